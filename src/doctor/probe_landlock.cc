#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

#include <fmt/format.h>

#include "doctor/probe_child.h"
#include "doctor/probe_filters.h"
#include "doctor/probe_userns.h"
#include "sys/kernel_constants.h"

namespace belljar::doctor {
namespace {

// The kernel's struct as of ABI 6; older kernels take a shorter one.
struct RulesetAttr {
  std::uint64_t fs = 0;
  std::uint64_t net = 0;
  std::uint64_t scoped = 0;
};

RulesetAttr AttrFor(int abi) {
  RulesetAttr attr{.fs = BELLJAR_LANDLOCK_FS_ABI1};
  if (abi >= 2) attr.fs |= BELLJAR_LANDLOCK_FS_REFER;
  if (abi >= 3) attr.fs |= BELLJAR_LANDLOCK_FS_TRUNCATE;
  if (abi >= 5) attr.fs |= BELLJAR_LANDLOCK_FS_IOCTL_DEV;
  if (abi >= 4) attr.net = BELLJAR_LANDLOCK_NET_BIND_TCP | BELLJAR_LANDLOCK_NET_CONNECT_TCP;
  if (abi >= 6) attr.scoped = BELLJAR_LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | BELLJAR_LANDLOCK_SCOPE_SIGNAL;
  return attr;
}

std::size_t SizeFor(int abi) { return abi >= 6 ? 24 : abi >= 4 ? 16 : 8; }

// Restricts the calling process to nothing at all.
Finding Restrict(int abi) {
  const RulesetAttr attr = AttrFor(abi);
  const long ruleset = ::syscall(SYS_landlock_create_ruleset, &attr, SizeFor(abi), 0);
  if (ruleset < 0) return Finding::Failed("landlock_create_ruleset");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Finding::Failed("no_new_privs");
  const unsigned flags = abi >= 7 ? BELLJAR_LANDLOCK_RESTRICT_LOG_SAME_EXEC_OFF : 0;
  if (::syscall(SYS_landlock_restrict_self, ruleset, flags) != 0) return Finding::Failed("landlock_restrict_self");
  return Finding::Passed();
}

Trial TryFiles(int abi) {
  return TryInChild(0, [=] {
    if (const Finding report = Restrict(abi); report.step != nullptr) return report;
    if (::open("/", O_RDONLY | O_CLOEXEC) >= 0) return Finding::Failed("refuse a file", 0);
    return errno == EACCES ? Finding::Passed() : Finding::Failed("refuse a file");
  });
}

Trial TryScopes(int abi) {
  return TryInChild(0, [=] {
    const pid_t outside = ::getppid();
    if (const Finding report = Restrict(abi); report.step != nullptr) return report;
    if (::kill(outside, 0) == 0) return Finding::Failed("refuse a signal", 0);
    return errno == EPERM ? Finding::Passed() : Finding::Failed("refuse a signal");
  });
}

void ExplainAbsence(int error, Probe* probe) {
  if (error == EOPNOTSUPP) {
    const std::string active = ReadText("/sys/kernel/security/lsm");
    probe->detail = "compiled into this kernel, but switched off";
    probe->fix = fmt::format("add the boot parameter lsm=landlock,{}",
                             active.empty() ? "<the list in /sys/kernel/security/lsm>" : active);
  } else if (error == ENOSYS) {
    probe->detail = "this kernel does not have it";
    probe->fix = "boot Linux 6.12 or newer (5.13 for a part of it) with CONFIG_SECURITY_LANDLOCK=y";
  } else {
    probe->detail = fmt::format("refused by a seccomp filter over this process (errno {})", error);
    probe->fix = "let what started this process allow the landlock_* system calls";
  }
}

Probe FromTrial(Probe probe, const Trial& trial) {
  probe.state = trial.passed() ? ProbeState::kOk : ProbeState::kMissing;
  if (!trial.passed()) probe.detail = trial.Text();
  return probe;
}

void LacksAbi(int abi, int needed, std::string_view since, Probe* probe) {
  // Without any Landlock the first probe names the reason; the kernel may well be new enough.
  probe->detail = abi == 0 ? "needs Landlock" : fmt::format("needs Landlock ABI {}, this is {}", needed, abi);
  if (abi != 0) probe->fix = fmt::format("boot Linux {} or newer", since);
}

Probe ProbeScopes(int abi) {
  Probe probe{.name = "landlock scopes",
              .group = ProbeGroup::kFilters,
              .purpose = "no signals and no abstract sockets to processes outside, without namespaces"};
  if (abi >= 6) return FromTrial(probe, TryScopes(abi));
  LacksAbi(abi, 6, "6.12", &probe);
  return probe;
}

Probe ProbeTcp(int abi) {
  Probe probe{.name = "landlock tcp",
              .group = ProbeGroup::kFilters,
              .purpose = "a second lock on TCP besides the network namespace"};
  if (abi >= 4) {
    probe.state = ProbeState::kOk;
    probe.detail = "bind and connect";
  } else {
    LacksAbi(abi, 4, "6.7", &probe);
  }
  return probe;
}

}  // namespace

int LandlockAbi() {
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return abi < 0 ? 0 : static_cast<int>(abi);
}

std::string DescribeLandlockAbi(int abi) {
  constexpr const char* kAdded[] = {"files", ", refer", ", truncate", ", tcp", ", ioctl", ", scopes", ", audit"};
  std::string text;
  for (int i = 0; i < abi && i < static_cast<int>(std::size(kAdded)); ++i) text += kAdded[i];
  return text;
}

Probes ProbeLandlock() {
  // In a child: under a filter that kills, even asking for the version is fatal.
  const Trial version = TryInChild(0, [] {
    const int abi = LandlockAbi();
    return abi > 0 ? Finding::Passed(abi) : Finding::Failed("landlock_create_ruleset");
  });
  const int abi = static_cast<int>(version.value);
  Probe files{.name = "landlock",
              .group = ProbeGroup::kFilters,
              .purpose = "a second wall around files, which holds even if the first falls"};
  if (!version.passed()) {
    ExplainAbsence(version.error, &files);
    return {files, ProbeTcp(0), ProbeScopes(0)};
  }
  files = FromTrial(files, TryFiles(abi));
  if (files.state == ProbeState::kOk) {
    files.detail = fmt::format("ABI {}: {}", abi, DescribeLandlockAbi(abi));
    if (abi < 3) {
      files.state = ProbeState::kPartial;
      files.detail += "; can't refuse truncation";
      files.fix = "boot Linux 6.2 or newer";
    }
  }
  return {files, ProbeTcp(abi), ProbeScopes(abi)};
}

}  // namespace belljar::doctor
