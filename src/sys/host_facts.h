// sys/host_facts.h: the few facts about this host and caller that a plan is made from. Cheap enough for every run; the
// deep probes that really try each feature are `belljar doctor`'s (doctor/probe.h).
#pragma once

#include <sys/types.h>

#include <string>

#include "sys/cgroup_layout.h"

namespace belljar::sys {

struct HostFacts {
  uid_t uid = 0;
  gid_t gid = 0;
  /// The caller's capabilities let it make namespaces, mounts and ids directly, without a user namespace.
  bool privileged = false;
  /// Taken for granted until a launch or a probe shows otherwise.
  bool user_namespaces = true;
  std::string user_namespaces_lack;  ///< Why not, and the fix, when they are not to be had.
  int landlock_abi = 0;              ///< 0: none
  bool seccomp_listener = true;      ///< False under another listener, which the kernel allows only one of.
  bool clone_into_cgroup = true;     ///< clone3 can start a child in a v2 cgroup.
  bool read_only_sysctls = false;    ///< As in many containers: settings of a new namespace can't be changed either.
  bool mount_setattr = true;         ///< Linux 5.12: the root can be built and sealed.
  int cpus = 1;
  std::string kernel;   ///< "Linux 6.1.0 x86_64"
  std::string release;  ///< "6.1.0"
  CgroupLayout cgroups;
};

HostFacts ReadHostFacts();

}  // namespace belljar::sys
