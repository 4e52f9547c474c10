// doctor/probe_host.h: process calls, settings and devices of the host, and who we are on it.
#pragma once

#include <cstdint>

#include "doctor/probe.h"

namespace belljar::doctor {

struct HostInfo {
  std::string kernel;        ///< "6.1.0-18-amd64"
  std::string arch;          ///< "x86_64"
  std::string distribution;  ///< PRETTY_NAME of os-release
  std::string user;          ///< Name, or the number where it has none.
  std::uint32_t uid = 0;
  std::string container;  ///< "docker", "podman" …; empty outside of any that shows itself.
};
HostInfo ReadHostInfo();

/// "clone3", "pidfd" (group limits).
Probes ProbeProcessCalls();
/// "tiocsti", and one probe for each sysctl that this kernel has: "user.max_user_namespaces",
/// "kernel.unprivileged_userns_clone", "kernel.apparmor_restrict_unprivileged_userns", "kernel.yama.ptrace_scope",
/// "kernel.dmesg_restrict", "kernel.kptr_restrict"; and "kvm".
Probes ProbeHost();

}  // namespace belljar::doctor
