#include "doctor/probe_namespaces.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "doctor/probe_child.h"
#include "doctor/probe_userns.h"
#include "sys/host_facts.h"
#include "sys/kernel_constants.h"

namespace belljar::doctor {
namespace {

struct Kind {
  const char* name;
  const char* file;    // under /proc/self/ns
  const char* sysctl;  // user.max_*_namespaces
  const char* config;
  unsigned long flag;
  const char* purpose;
};

constexpr Kind kKinds[] = {
    {"mount namespace", "mnt", "max_mnt_namespaces", "CONFIG_NAMESPACES", CLONE_NEWNS,
     "a root of its own: only the files that the policy grants exist"},
    {"pid namespace", "pid", "max_pid_namespaces", "CONFIG_PID_NS", CLONE_NEWPID,
     "processes outside are invisible; all inside die with the first"},
    {"network namespace", "net", "max_net_namespaces", "CONFIG_NET_NS", CLONE_NEWNET,
     "no network but what is granted, the host's loopback included"},
    {"ipc namespace", "ipc", "max_ipc_namespaces", "CONFIG_IPC_NS", CLONE_NEWIPC,
     "System V and POSIX IPC of the host are out of reach"},
    {"uts namespace", "uts", "max_uts_namespaces", "CONFIG_UTS_NS", CLONE_NEWUTS, "a host name of its own"},
    {"cgroup namespace", "cgroup", "max_cgroup_namespaces", "CONFIG_CGROUPS", CLONE_NEWCGROUP,
     "the host's cgroup paths are hidden"},
    {"time namespace", "time", "max_time_namespaces", "CONFIG_TIME_NS", BELLJAR_CLONE_NEWTIME,
     "not used yet: clocks that don't tell the host's uptime"},
};

Trial TryKind(const Kind& kind, Way way) {
  // CLONE_NEWTIME shares its bit with the exit signal of clone(2): only unshare can ask for it.
  if (kind.flag == BELLJAR_CLONE_NEWTIME) {
    return TryInNamespaces(way, 0, [&] {
      return ::unshare(static_cast<int>(kind.flag)) == 0 ? Finding::Passed() : Finding::Failed("unshare");
    });
  }
  return TryInNamespaces(way, kind.flag, [] { return Finding::Passed(); });
}

std::pair<std::string, std::string> ExplainKind(const Kind& kind, const Trial& trial) {
  if (::access(fmt::format("/proc/self/ns/{}", kind.file).c_str(), F_OK) != 0) {
    return {"this kernel is built without it", fmt::format("boot a kernel with {}=y", kind.config)};
  }
  if (trial.error == ENOSPC) {
    return {fmt::format("user.{} is used up", kind.sysctl),
            fmt::format("as root: sysctl -w user.{}=15000", kind.sysctl)};
  }
  return {trial.Text(), "loosen the seccomp filter or security module that refuses it: see dmesg or the audit log"};
}

Probe ProbeKind(const Kind& kind, Way way) {
  Probe probe{.name = kind.name, .group = ProbeGroup::kNamespaces, .purpose = kind.purpose};
  if (way == Way::kNone) {
    probe.detail = kNeedsUserNamespace;
    return probe;
  }
  const Trial trial = TryKind(kind, way);
  if (trial.passed()) {
    probe.state = ProbeState::kOk;
  } else {
    std::tie(probe.detail, probe.fix) = ExplainKind(kind, trial);
  }
  return probe;
}

Probe ProbeUser(const Expected<void>& usable) {
  Probe probe{.name = "user namespace",
              .group = ProbeGroup::kNamespaces,
              .purpose = "makes all the others possible, without any right outside"};
  if (usable) {
    probe.state = ProbeState::kOk;
    probe.detail = "made, mapped, and a tmpfs mounted in it";
  } else {
    probe.detail = usable.error().message;
    probe.fix = usable.error().hint;
  }
  return probe;
}

Probe ProbeProc(Way way) {
  Probe probe{.name = "fresh /proc",
              .group = ProbeGroup::kNamespaces,
              .purpose = "the sandbox sees its own processes in /proc and no others"};
  if (way == Way::kNone) {
    probe.detail = kNeedsUserNamespace;
    return probe;
  }
  const Trial trial = TryInNamespaces(way, CLONE_NEWNS | CLONE_NEWPID, [] {
    const int mounted = ::mount("proc", "/", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr);
    return mounted == 0 ? Finding::Passed() : Finding::Failed("mount proc");
  });
  if (trial.passed()) {
    probe.state = ProbeState::kOk;
    return probe;
  }
  probe.detail = trial.Text();
  if (trial.error == EPERM) {
    probe.detail = "the kernel allows it only where /proc itself is not partly covered, as it is in most containers";
    probe.fix =
        "docker or podman run with --security-opt systempaths=unconfined; Kubernetes: securityContext.procMount: "
        "Unmasked";
  }
  return probe;
}

}  // namespace

Expected<void> ProbeNamespaceForm() {
  if (Expected<void> usable = ProbeUserNamespace(); !usable) return usable;
  const Probe proc = ProbeProc(Way::kThroughUser);
  if (proc.state == ProbeState::kOk) return {};
  return std::unexpected(Error{.step = "mount a fresh /proc", .message = proc.detail, .hint = proc.fix, .code = EPERM});
}

NamespaceFindings ProbeNamespaces() {
  const Expected<void> usable = ProbeUserNamespace();
  NamespaceFindings found;
  found.way = sys::ReadHostFacts().privileged ? Way::kDirect : usable ? Way::kThroughUser : Way::kNone;
  found.probes.push_back(ProbeUser(usable));
  for (const Kind& kind : kKinds) found.probes.push_back(ProbeKind(kind, found.way));
  found.probes.push_back(ProbeProc(found.way));
  return found;
}

}  // namespace belljar::doctor
