#include "doctor/probe_host.h"

#include <fcntl.h>
#include <linux/kvm.h>
#include <linux/sched.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "base/unique_fd.h"
#include "doctor/probe_child.h"
#include "doctor/probe_userns.h"

namespace belljar::doctor {
namespace {

struct Setting {
  const char* name;
  const char* path;
  std::int64_t least;  // at least this is good
  std::int64_t most;   // and at most this
  const char* purpose;
  const char* concern;
  const char* fix;
};

constexpr std::int64_t kAny = INT64_MAX;
constexpr Setting kSettings[] = {
    {"user.max_user_namespaces", "/proc/sys/user/max_user_namespaces", 64, kAny,
     "how many sandboxes can be open at once, for all of a user's programs", "no room for many sandboxes",
     "sysctl -w user.max_user_namespaces=15000"},
    {"kernel.unprivileged_userns_clone", "/proc/sys/kernel/unprivileged_userns_clone", 1, kAny,
     "whether users may make user namespaces at all", "only root may", "sysctl -w kernel.unprivileged_userns_clone=1"},
    {"kernel.apparmor_restrict_unprivileged_userns", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0, 0,
     "whether AppArmor voids users' user namespaces", "only programs with a profile may use them",
     "install an AppArmor profile for belljar (see docs/doctor.md)"},
    {"kernel.yama.ptrace_scope", "/proc/sys/kernel/yama/ptrace_scope", 1, kAny,
     "processes of one user can't read each other's memory: level process relies on it",
     "any process of this user can trace any other", "sysctl -w kernel.yama.ptrace_scope=1"},
    {"kernel.dmesg_restrict", "/proc/sys/kernel/dmesg_restrict", 1, kAny,
     "the kernel log is closed to level process; level kernel closes it anyway", "every user can read the kernel log",
     "sysctl -w kernel.dmesg_restrict=1"},
    {"kernel.kptr_restrict", "/proc/sys/kernel/kptr_restrict", 1, kAny,
     "kernel addresses are hidden from level process; level kernel hides them anyway", "kernel addresses are readable",
     "sysctl -w kernel.kptr_restrict=1"},
};

std::optional<Probe> ProbeSetting(const Setting& setting) {
  const std::optional<std::int64_t> value = ReadNumber(setting.path);
  if (!value) return std::nullopt;
  const bool good = *value >= setting.least && *value <= setting.most;
  return Probe{.name = setting.name,
               .group = ProbeGroup::kHost,
               .state = good ? ProbeState::kOk : ProbeState::kPartial,
               .purpose = setting.purpose,
               .detail = good ? std::to_string(*value) : fmt::format("{}: {}", *value, setting.concern),
               .fix = good ? "" : fmt::format("as root: {}", setting.fix)};
}

// Types one byte into a terminal of its own. Without CAP_SYS_ADMIN, as a guest would: root is always allowed to.
Trial TryTiocsti() {
  return TryInChild(0, [] {
    const int master = ::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0) return Finding::Failed("open /dev/ptmx");
    int unlock = 0;
    if (::ioctl(master, TIOCSPTLCK, &unlock) != 0) return Finding::Failed("unlock a terminal");
    const int slave = ::ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0) return Finding::Failed("open a terminal");
    if (::setsid() < 0 || ::ioctl(slave, TIOCSCTTY, 0) != 0) return Finding::Failed("own a terminal");
    if (::geteuid() == 0 && ::syscall(SYS_setresuid, 65534, 65534, 65534) != 0) return Finding::Failed("setresuid");
    return ::ioctl(slave, TIOCSTI, "x") == 0 ? Finding::Passed(1) : Finding::Passed(0);
  });
}

Probe ProbeTiocsti() {
  Probe probe{.name = "tiocsti",
              .group = ProbeGroup::kHost,
              .purpose = "no program can type into the caller's terminal; level kernel refuses that anyway"};
  const Trial trial = TryTiocsti();
  const std::optional<std::int64_t> legacy = ReadNumber("/proc/sys/dev/tty/legacy_tiocsti");
  const bool works = trial.passed() ? trial.value == 1 : legacy.value_or(1) != 0;
  if (!works) {
    probe.state = ProbeState::kOk;
    probe.detail = "refused by this kernel";
    return probe;
  }
  probe.state = ProbeState::kPartial;
  probe.detail = "this kernel allows it: at level process use --tty for hostile programs";
  probe.fix =
      legacy ? "as root: sysctl -w dev.tty.legacy_tiocsti=0" : "boot Linux 6.2 or newer with CONFIG_LEGACY_TIOCSTI=n";
  return probe;
}

Probe ProbeKvm() {
  Probe probe{.name = "kvm", .group = ProbeGroup::kHost, .purpose = "not used yet: hardware virtual machines"};
  base::UniqueFd fd(::open("/dev/kvm", O_RDWR | O_CLOEXEC));
  if (const int error = errno; !fd.valid()) {
    probe.detail = fmt::format("open /dev/kvm: {}", std::strerror(error));
    if (error == EACCES) probe.fix = "as root: usermod -aG kvm <user>, then log in again";
    if (error == ENOENT) probe.fix = "as root: modprobe kvm_intel or kvm_amd; in a virtual machine, allow nesting";
    if (error == ENODEV) probe.fix = "switch on hardware virtualisation (in firmware, or nesting in a virtual machine)";
    return probe;
  }
  const int version = ::ioctl(fd.get(), KVM_GET_API_VERSION, 0);
  probe.state = version == KVM_API_VERSION ? ProbeState::kOk : ProbeState::kMissing;
  probe.detail = version < 0 ? fmt::format("KVM_GET_API_VERSION: {}", std::strerror(errno))
                             : fmt::format("API version {}", version);
  return probe;
}

Finding UseClone3() {
  clone_args args{.flags = CLONE_CLEAR_SIGHAND};
  const long child = ::syscall(SYS_clone3, &args, sizeof args);
  if (child == 0) ::_exit(7);
  if (child < 0) return Finding::Failed("clone3");
  int status = 0;
  ::waitpid(static_cast<pid_t>(child), &status, __WALL);
  return WEXITSTATUS(status) == 7 ? Finding::Passed() : Finding::Failed("clone3", 0);
}

Finding UsePidfd() {
  const long child = RawFork();
  if (child < 0) return Finding::Failed("fork");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  Finding report = Finding::Passed();
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  if (fd < 0) {
    report = Finding::Failed("pidfd_open");
  } else if (::syscall(SYS_pidfd_send_signal, fd, SIGKILL, nullptr, 0) != 0) {
    report = Finding::Failed("pidfd_send_signal");
  } else if (pollfd ready{.fd = fd, .events = POLLIN}; ::poll(&ready, 1, 1000) != 1) {
    report = Finding::Failed("poll a pidfd", ETIMEDOUT);
  }
  ::kill(static_cast<pid_t>(child), SIGKILL);
  ::waitpid(static_cast<pid_t>(child), nullptr, __WALL);
  return report;
}

Probe FromCall(std::string name, std::string purpose, std::string_view since, const Trial& trial) {
  return {
      .name = std::move(name),
      .group = ProbeGroup::kLimits,
      .state = trial.passed() ? ProbeState::kOk : ProbeState::kMissing,
      .purpose = std::move(purpose),
      .detail = trial.Text(),
      .fix = trial.passed()
                 ? ""
                 : fmt::format("boot Linux {} or newer, or let the filter over this process allow the call", since)};
}

}  // namespace

HostInfo ReadHostInfo() {
  HostInfo info;
  utsname names{};
  if (::uname(&names) == 0) {
    info.kernel = names.release;
    info.arch = names.machine;
  }
  const std::string release = "\n" + ReadText("/etc/os-release");
  if (const std::size_t at = release.find("\nPRETTY_NAME="); at != std::string::npos) {
    info.distribution = release.substr(at + 13, release.find('\n', at + 1) - at - 13);
    std::erase(info.distribution, '"');
  }
  info.uid = ::geteuid();
  info.user = std::to_string(info.uid);
  // Read here and not by getpwuid, which drags the name service into a static program.
  const std::string passwd = "\n" + ReadText("/etc/passwd") + "\n";
  if (const std::size_t at = passwd.find(fmt::format(":x:{}:", info.uid)); at != std::string::npos) {
    const std::size_t start = passwd.rfind('\n', at) + 1;
    info.user = passwd.substr(start, at - start);
  }
  info.container = ReadText("/run/systemd/container");
  // A virtual machine made from an image has that file too; its root is a disk.
  const std::string mounts = "\n" + ReadText("/proc/self/mounts");
  const std::size_t root = mounts.rfind('\n', mounts.find(" / "));
  const bool disk = root != std::string::npos && mounts.compare(root, 6, "\n/dev/") == 0;
  if (info.container.empty() && !disk && ::access("/.dockerenv", F_OK) == 0) info.container = "docker";
  if (info.container.empty() && ::access("/run/.containerenv", F_OK) == 0) info.container = "podman";
  return info;
}

Probes ProbeProcessCalls() {
  return {FromCall("clone3", "a process starts in all its namespaces at once", "5.3", TryInChild(0, UseClone3)),
          FromCall("pidfd", "deadlines end exactly the process they mean, never a recycled number", "5.3",
                   TryInChild(0, UsePidfd))};
}

Probes ProbeHost() {
  Probes probes{ProbeTiocsti()};
  for (const Setting& setting : kSettings) {
    if (std::optional<Probe> probe = ProbeSetting(setting)) probes.push_back(std::move(*probe));
  }
  probes.push_back(ProbeKvm());
  return probes;
}

}  // namespace belljar::doctor
