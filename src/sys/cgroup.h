// sys/cgroup.h: one run's cgroup, in every hierarchy it needs.
//
// Owns the directories: the destructor removes them (their processes must be gone or dying). Kernel 5.15 or newer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <belljar/error.h>

#include "base/unique_fd.h"
#include "sys/cgroup_layout.h"

namespace belljar::sys {

struct CgroupLimits {
  std::uint64_t memory = 0;      ///< Bytes; kUnlimited: accounting only.
  std::uint64_t processes = 0;   ///< Tasks, init included.
  std::uint64_t cpus_milli = 0;  ///< kUnlimited: none.
  bool cpu_time = false;         ///< CPU time is looked at while it runs; at the end rusage tells it too.
};

struct CgroupUsage {
  std::uint64_t cpu_ns = 0;
  std::uint64_t memory_peak = 0;
  std::uint64_t processes_peak = 0;
  std::uint64_t oom_kills = 0;
  std::uint64_t processes_refused = 0;
};

/// How a process gets in: v1 always joins by itself; on v2 it can also be cloned into the cgroup, which is cheaper.
enum class CgroupEntry : unsigned char { kClone, kJoin };

class Cgroup {
 public:
  Cgroup() = default;
  /// The directories that Create would make: known before, so that a janitor can be told first.
  static std::vector<std::string> Paths(const CgroupLayout& layout, const std::string& name,
                                        const CgroupLimits& limits);
  static Expected<Cgroup> Create(const CgroupLayout& layout, const std::string& name, const CgroupLimits& limits,
                                 CgroupEntry entry);
  Cgroup(Cgroup&&) = default;
  Cgroup& operator=(Cgroup&&) = default;
  ~Cgroup();

  bool valid() const { return !paths_.empty(); }
  CgroupVersion version() const { return version_; }
  /// A directory for CLONE_INTO_CGROUP; -1 for CgroupEntry::kJoin.
  int clone_fd() const { return directory_.get(); }
  /// Files that a process joins by writing "0" into; none for CgroupEntry::kClone.
  const std::vector<base::UniqueFd>& join_fds() const { return join_; }
  /// Readable (v1) or with a priority event (v2) when memory ran out; -1 when memory is not limited.
  int oom_event_fd() const {
    if (!memory_limited_) return -1;
    return version_ == CgroupVersion::kV2 ? oom_control_.get() : oom_event_.get();
  }
  /// Whether memory ran out; re-arms oom_event_fd().
  bool TakeOutOfMemory() const;
  /// Has a priority event when a fork was refused; -1 when processes are not limited.
  int processes_event_fd() const { return processes_limited_ ? pids_events_.get() : -1; }
  /// How many forks were refused so far; re-arms processes_event_fd().
  std::uint64_t TakeRefusedForks() const;

  enum class Lowered : std::uint8_t { kDone, kMemoryInUse, kProcessesInUse };
  /// Sets limits that are lower than those it was made with. Something else than kDone: more is in use than is allowed
  /// now. An Error where the kernel keeps no such limit here.
  Expected<Lowered> Lower(const CgroupLimits& limits) const;

  CgroupUsage Usage() const;
  std::uint64_t CpuNs() const;
  /// Removes the directories, whose processes must be gone. False when one could not be removed.
  bool Remove();

 private:
  std::string memory_, pids_, cpu_, cpuacct_;
  CgroupVersion version_ = CgroupVersion::kNone;
  std::vector<std::string> paths_;
  base::UniqueFd directory_;
  std::vector<base::UniqueFd> join_;
  base::UniqueFd oom_event_;    ///< v1: an eventfd.
  base::UniqueFd oom_control_;  ///< v1: memory.oom_control; v2: memory.events.
  base::UniqueFd memory_peak_;
  base::UniqueFd pids_events_;
  base::UniqueFd pids_peak_;
  bool memory_limited_ = false;
  bool processes_limited_ = false;

  Expected<void> LimitV1(const CgroupLimits& limits) const;
  Expected<void> LimitV2(const CgroupLimits& limits) const;
  Expected<void> OpenEntry(CgroupEntry entry);
  Expected<void> OpenEvents(const CgroupLimits& limits);
};

}  // namespace belljar::sys
