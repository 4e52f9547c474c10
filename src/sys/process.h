// sys/process.h: processes by raw clone3 and pidfd, safe to use from a program with many threads.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

#include <belljar/error.h>

namespace belljar::sys {

struct CloneOptions {
  std::uint64_t flags = 0;
  int* pidfd = nullptr;  ///< Set: receives a pidfd.
  int cgroup_fd = -1;    ///< Not negative: the child starts in this cgroup (v2).
};

/// False where a filter hides clone3 (older Docker profiles do); Clone then uses clone, which knows no cgroup_fd.
bool HasClone3();

/// A copy of this process; the child sees 0 and may use nothing that locks or allocates. It sends no signal when it
/// ends and is invisible to the host program's own wait calls: wait for it with __WALL. -1 with errno.
pid_t Clone(const CloneOptions& options);

/// Blocks all signals of this thread for its lifetime: a child cloned meanwhile starts with them blocked.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

/// Keeps SIGPIPE of this thread's own writes away from the host program.
class BlockedSigpipe {
 public:
  BlockedSigpipe();
  ~BlockedSigpipe();
  BlockedSigpipe(const BlockedSigpipe&) = delete;
  BlockedSigpipe& operator=(const BlockedSigpipe&) = delete;

 private:
  sigset_t before_{};
  bool was_pending_ = false;
};

bool IsOpen(int fd);

int SendSignal(int pidfd, int signal);

/// Whether there is such a process, seen or not. Another one may have its number by now.
bool Exists(pid_t pid);

/// 0 where that can't be seen.
pid_t ParentOf(pid_t pid);

/// Where this program's argument and environment strings lie; both null when unknown.
struct ArgumentArea {
  char* begin = nullptr;
  char* end = nullptr;
};
ArgumentArea FindArgumentArea();

Error ErrnoError(std::string step, int code, std::string hint = {});

/// Nanoseconds of CLOCK_MONOTONIC.
std::uint64_t NowNs();

/// A short name that no other run on this host has.
std::string MakeRunId();

/// A random UUID (version 4).
std::string MakeUuid();

/// True when this process has one thread and no child: all children that it finds from now on are of that thread's
/// making.
bool IsAlone();

enum class Reaper : std::uint8_t { kOthers, kSelf };

/// Who becomes the parent of what this process's children leave behind. Returns what it was before.
Reaper AdoptOrphans(Reaper by);

}  // namespace belljar::sys
