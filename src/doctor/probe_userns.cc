#include "doctor/probe_userns.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>
#include <fmt/format.h>

#include <charconv>
#include <climits>
#include <string_view>

#include "sys/files.h"

namespace belljar::doctor {
namespace {

constexpr const char* kStepMap = "write /proc/self/uid_map";
constexpr const char* kStepMount = "mount a tmpfs";

bool WriteFile(const char* path, const char* text, std::size_t size) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t written = ::write(fd, text, size);
  const int saved = errno;
  ::close(fd);
  errno = saved;
  return written == static_cast<ssize_t>(size);
}

std::string AppArmorFix(const std::string& program) {
  return fmt::format(
      "as root: printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile belljar {} flags=(unconfined) {{\\n  "
      "userns,\\n}}\\n' > /etc/apparmor.d/belljar && apparmor_parser -r /etc/apparmor.d/belljar (or, for all programs: "
      "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0)",
      program);
}

constexpr std::string_view kSeccompFix =
    "loosen what started this process: docker or podman run with --security-opt seccomp=unconfined (or a profile that "
    "allows unshare, clone and mount), a systemd unit with RestrictNamespaces=no";

Error Because(const Trial& trial, std::string message, std::string hint) {
  return {.step = "make a user namespace", .message = std::move(message), .hint = std::move(hint), .code = trial.error};
}

// The namespace could not be made at all.
Error ExplainClone(const Trial& trial, const UserNamespaceFacts& facts) {
  const bool root = facts.euid == 0;
  if (!facts.kernel_support || trial.error == EINVAL) {
    return Because(trial, "this kernel is built without user namespaces", "boot a kernel with CONFIG_USER_NS=y");
  }
  if (facts.max_user_namespaces == 0) {
    return Because(trial, "the sysctl user.max_user_namespaces is 0",
                   "as root: sysctl -w user.max_user_namespaces=15000");
  }
  if (trial.error == ENOSPC || trial.error == EUSERS) {
    return Because(trial,
                   fmt::format("this user has as many user namespaces as user.max_user_namespaces allows ({}), or they "
                               "are nested 32 deep",
                               facts.max_user_namespaces.value_or(-1)),
                   "end other sandboxes, or as root: sysctl -w user.max_user_namespaces=15000");
  }
  if (!root && facts.unprivileged_clone == 0) {
    return Because(trial, "the sysctl kernel.unprivileged_userns_clone is 0",
                   "as root: sysctl -w kernel.unprivileged_userns_clone=1");
  }
  if (trial.end == Trial::End::kKilled || facts.seccomp_filtered) {
    return Because(trial, "a seccomp filter over this process refuses them", std::string(kSeccompFix));
  }
  if (!root && facts.apparmor_restrict.value_or(0) != 0) {
    return Because(trial, "AppArmor restricts unprivileged user namespaces", AppArmorFix(facts.program));
  }
  if (trial.error == EPERM) {
    return Because(trial, "the kernel refuses them, as it does in a chroot or under a security module",
                   "run outside the chroot (a pivot_root is fine), or allow user namespaces in the security module");
  }
  return Because(trial, trial.Text(), "see dmesg or the audit log for what refused it");
}

// It was made, but its capabilities are void.
Error ExplainPowerless(const Trial& trial, const UserNamespaceFacts& facts) {
  const std::string what = trial.Text();
  if (facts.euid != 0 && facts.apparmor_restrict.value_or(0) != 0) {
    return Because(trial, "AppArmor lets it be made but denies it every capability (" + what + ")",
                   AppArmorFix(facts.program));
  }
  if (trial.FailedAt(kStepMap) && trial.error == ENOENT) {
    return Because(trial, "/proc is not mounted", "mount it: mount -t proc proc /proc");
  }
  if (!facts.apparmor_label.empty() && trial.error == EACCES) {
    return Because(trial, fmt::format("the AppArmor profile {} forbids it ({})", facts.apparmor_label, what),
                   "docker or podman: run with --security-opt apparmor=unconfined; a service: change that profile");
  }
  if (trial.end == Trial::End::kKilled || facts.seccomp_filtered) {
    return Because(trial,
                   fmt::format("it can be made, but a seccomp filter over this process forbids its use ({})", what),
                   std::string(kSeccompFix));
  }
  return Because(trial, fmt::format("it can be made, but its capabilities are refused ({})", what),
                 "see dmesg or the audit log for the security module that refused it");
}

}  // namespace

std::string ReadText(const char* path) {
  std::string text = sys::ReadSmallFile(path, 1 << 20).value_or("");
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return text;
}

std::optional<std::int64_t> ReadNumber(const char* path) {
  const std::string text = ReadText(path);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

OwnIdMap::OwnIdMap() : uid(fmt::format("0 {} 1", ::geteuid())), gid(fmt::format("0 {} 1", ::getegid())) {}

Finding MapOwnIds(const OwnIdMap& map) {
  // Without this the kernel refuses an unprivileged gid_map: dropping a group could grant access (CVE-2014-8989).
  if (!WriteFile("/proc/self/setgroups", "deny", 4) && errno != ENOENT) return Finding::Failed(kStepMap);
  if (!WriteFile("/proc/self/uid_map", map.uid.data(), map.uid.size())) return Finding::Failed(kStepMap);
  if (!WriteFile("/proc/self/gid_map", map.gid.data(), map.gid.size()))
    return Finding::Failed("write /proc/self/gid_map");
  return Finding::Passed();
}

Finding DetachMounts(unsigned long flags) {
  if ((flags & CLONE_NEWNS) == 0) return Finding::Passed();
  return ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 ? Finding::Passed()
                                                                           : Finding::Failed("make mounts private");
}

UserNamespaceFacts ReadUserNamespaceFacts() {
  UserNamespaceFacts facts;
  facts.euid = ::geteuid();
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  facts.program = size > 0 ? std::string(path, static_cast<std::size_t>(size)) : "/usr/bin/belljar";
  facts.max_user_namespaces = ReadNumber("/proc/sys/user/max_user_namespaces");
  facts.unprivileged_clone = ReadNumber("/proc/sys/kernel/unprivileged_userns_clone");
  facts.apparmor_restrict = ReadNumber("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
  // The old shared attribute file belongs to whichever security module came first; only trust it when AppArmor is on.
  facts.apparmor_label = ReadText("/proc/self/attr/apparmor/current");
  if (facts.apparmor_label.starts_with("unconfined")) facts.apparmor_label.clear();
  facts.seccomp_filtered = ReadText("/proc/self/status").find("\nSeccomp:\t2") != std::string::npos;
  facts.kernel_support = ::access("/proc/self/ns/user", F_OK) == 0 || ::access("/proc/self", F_OK) != 0;
  return facts;
}

Error ExplainUserNamespace(const Trial& trial, const UserNamespaceFacts& facts) {
  if (trial.end == Trial::End::kTimedOut) {
    return Because(trial, "the kernel did not answer in time", "try again when the machine is less busy");
  }
  if (trial.end == Trial::End::kFailed && !trial.FailedAt(kStepClone)) return ExplainPowerless(trial, facts);
  return ExplainClone(trial, facts);
}

Expected<void> ProbeUserNamespace() {
  const Trial trial = TryInNamespaces(Way::kThroughUser, CLONE_NEWNS, [] {
    // Over "/", the one directory that surely exists.
    if (::mount("none", "/", "tmpfs", 0, nullptr) != 0) return Finding::Failed(kStepMount);
    return Finding::Passed();
  });
  if (trial.passed()) return {};
  return std::unexpected(ExplainUserNamespace(trial, ReadUserNamespaceFacts()));
}

}  // namespace belljar::doctor
