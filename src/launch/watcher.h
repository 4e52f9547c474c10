// launch/watcher.h: looks at a sandbox's processes from outside, where no cgroup counts them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace belljar::launch {

struct TreeUse {
  std::uint64_t tasks = 0;         ///< Processes and threads, init not counted.
  std::uint64_t memory_bytes = 0;  ///< Resident; shared pages counted once for each process.
  std::uint64_t cpu_ns = 0;        ///< Of the living and of children that were waited for.
};

/// Walks the process tree below `init`. Nothing where it can't be seen (a /proc with hidepid, no descriptors left):
/// what can't be watched must not run on.
std::optional<TreeUse> LookAtTree(pid_t init);

/// CPU time of a process, of all below it, and of those of them that were waited for. Nothing where it is gone or
/// hidden.
std::optional<std::uint64_t> CpuTimeOfTree(pid_t top);

/// Whose descendants the guest's processes are. In a live sandbox only stewards are children of init: a guest's orphan
/// falls to its steward, and a steward that is killed ends the sandbox.
enum class Above : std::uint8_t { kInit = 1, kStewards = 2 };

/// Every process of the guest, as far as they can be seen.
std::vector<pid_t> PidsOfGuest(pid_t init, Above above);

/// The same memory, with shared pages divided among their users; slower, for a second look.
std::uint64_t ProportionalMemory(pid_t init);

/// Bytes and inodes below a directory. Stops looking when `enough_bytes` or `enough_files` is passed.
struct DirectoryUse {
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
  bool seen_all = true;  ///< False when a part of it could not be looked at.
};
DirectoryUse LookAtDirectory(const std::string& path, std::uint64_t enough_bytes, std::uint64_t enough_files);

}  // namespace belljar::launch
