// doctor/probe_cgroup.h: which cgroup controllers this user can really use, by making a cgroup and setting a limit.
//
// The probes make an empty cgroup where a sandbox's would be (sys/cgroup_layout.h), write a limit that restricts
// nothing, move a throw-away child into it, and remove it. They never switch controllers on or off in an existing
// cgroup: doing so could take the limits from sandboxes that run meanwhile.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/probe.h"

namespace belljar::doctor {

/// One hierarchy that this process is in and can see.
struct CgroupHierarchy {
  bool v2 = false;
  std::vector<std::string> controllers;  ///< v1 only; "name=…" for one without.
  std::string top;                       ///< Where it is mounted.
  std::string own;                       ///< The directory of this process's cgroup; starts with `top`.
};

/// From the texts of /proc/self/mountinfo and /proc/self/cgroup. A hierarchy whose own cgroup lies outside what is
/// mounted (an outer cgroup namespace) is left out. Pure.
std::vector<CgroupHierarchy> ParseCgroups(std::string_view mountinfo, std::string_view self_cgroup);

/// "v2", "v1", "hybrid" (controllers in v1, an additional v2 tree) or "none". Pure.
std::string_view CgroupKind(const std::vector<CgroupHierarchy>& hierarchies);

/// "cgroups", "cgroup memory", "cgroup pids", "cgroup cpu", "cgroup cpuacct", "cgroup.kill".
Probes ProbeCgroups();

}  // namespace belljar::doctor
