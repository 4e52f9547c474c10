// sys/cgroup_layout.h: where this caller may make cgroups: v1, hybrid, v2, delegated or not.
#pragma once

#include <string>

namespace belljar::sys {

enum class CgroupVersion : unsigned char { kNone, kV1, kV2 };

/// Directories in which a child cgroup can be made; empty where that controller can't be had.
struct CgroupLayout {
  CgroupVersion version = CgroupVersion::kNone;
  std::string memory;
  std::string pids;
  std::string cpu;      ///< Limits; v1 cpu or v2 cpu.
  std::string cpuacct;  ///< Accounting; on v2 every cgroup has it.
  std::string lack;     ///< Why some are missing, and the fix.
};

/// Looks at the standard places (/sys/fs/cgroup) and at the caller's own cgroup. Changes nothing.
CgroupLayout FindCgroups();

}  // namespace belljar::sys
