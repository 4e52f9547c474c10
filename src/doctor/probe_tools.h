// doctor/probe_tools.h: other sandbox tools on PATH, their versions, and the versions known to be bad.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "doctor/probe.h"

namespace belljar::doctor {

struct Tool {
  std::string name;
  std::string path;     ///< Empty: not on PATH.
  std::string version;  ///< "1.1.5+ds1"; empty when it did not say.
  ProbeState state = ProbeState::kMissing;
  std::string note;  ///< What is wrong with this version, or what else there is to know.
};

/// Runs `--version` of bwrap, docker, podman, runc, crun, runsc, firejail and nft, where they are on PATH, all at the
/// same time and for three seconds at most; and looks whether the Docker daemon answers. `cgroup_kind` is that of
/// CgroupKind().
std::vector<Tool> ProbeTools(std::string_view cgroup_kind);

/// The first version number in what a tool printed: "runc version 1.1.5+ds1\n…" gives "1.1.5+ds1". Pure.
std::string FindVersion(std::string_view output);

/// -1, 0 or 1, comparing the numbers only; "1.2.0-rc.1" counts as 1.2.0. Pure.
int CompareVersions(std::string_view left, std::string_view right);

/// What is known to be wrong with a version: empty when nothing is. Pure.
std::string KnownProblem(std::string_view tool, std::string_view version, std::string_view cgroup_kind);

}  // namespace belljar::doctor
