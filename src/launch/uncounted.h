// launch/uncounted.h: what the kernel holds for a guest and no limit of the kernel's bounds. Bounded by looking now and
// then.
//
// Nearly all memory that a guest can make the kernel hold is charged to its cgroup, by measure (tests/containment:
// test_hoards.py). These are not, neither by v1 nor by v2: locks of files, replies that wait in netlink sockets, what
// waits in connections that nobody has accepted yet or in a datagram that is not sent off yet, and the places that
// threads have in the queues of files which they wait for.
//
// The memory that TCP and UDP may have is one for the whole host, whatever namespace its sockets are in.
//
// Timers, event counters and instances of epoll that have a descriptor are not charged either, and open files are
// counted for the whole host (fs.file-max), so descriptors are bounded by their number. By that too the look at each of
// them is done in time. Those on their way in sockets the kernel searches for cycles at each close of any unix socket,
// on nobody's account.
//
// Entries of epoll are charged, but also counted for the whole user, who may be the caller: one guest could take them
// all, and with millions of them its processes take seconds to end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/unique_fd.h"
#include "launch/verdict.h"
#include "launch/watcher.h"

namespace belljar::launch {

struct Uncounted {
  std::uint64_t socket_bytes = 0;  ///< In the buffers of sockets other than unix ones. 0 while they are few.
  std::uint64_t sockets = 0;
  bool crowds_host = false;  ///< Of what TCP, or UDP, may have on the host much is this guest's, and little is left.
  std::uint64_t locks = 0;   ///< Of files. 0 when they were not looked at.
  std::uint64_t polled = 0;  ///< Entries of epoll. 0 when they were not looked at.
  std::uint64_t waited_for = 0;  ///< Files, by all threads that sleep in poll() and select(). As above.
  std::uint64_t marks = 0;       ///< Lines about inotify that had to be read. As above.
  std::uint64_t open = 0;        ///< Descriptors of all processes. 0 where limits let them have few.
  std::uint64_t in_flight = 0;   ///< Descriptors on their way in sockets. 0 when they were not looked at.
  std::uint64_t orphans = 0;     ///< TCP connections that were closed and are not done. 0 while they are few.
  bool hidden = false;           ///< There are processes whose open files can't be looked at.
};

/// Whose network the guest is in: of a shared one nobody can tell which sockets are the guest's.
enum class Sockets : bool { kShared, kOwn };

class UncountedWatch {
 public:
  UncountedWatch(Above above, Sockets sockets) : above_(above), sockets_(sockets) {}

  /// Before the first look.
  void SetInit(pid_t init) { init_ = init; }
  /// The same, and when it is another.
  void SetMemoryLimit(std::uint64_t bytes) { enough_ = bytes / 2; }
  /// How many descriptors the guest's processes may have, all together.
  void SetMostOpen(std::uint64_t most) { most_open_ = most; }
  /// By which TCP is looked at; without it (an older kernel) its queues count as full.
  void SeeSockets(base::UniqueFd diag) { diag_ = std::move(diag); }
  /// Which of the processes may hide, as no guest's code runs in them.
  void AllowToHide(std::function<bool(pid_t)> may) { may_hide_ = std::move(may); }
  /// Nothing where it can't be seen. Bounded in time, whatever the guest has open: the rest is for the next look.
  std::optional<Uncounted> Look(std::uint64_t now);
  /// Whether more was found than has been looked through, so that there is reason to hurry.
  bool hurries() const { return !unswept_.empty() && grows_; }
  /// kUncounted when it is more than half as much as the memory limit; kObjects when it is more of one kind than any
  /// program has use for.
  KillReason Judge(const Uncounted& seen) const;

 private:
  bool LookAtSockets(Uncounted& seen) const;
  bool LookAtFiles(std::uint64_t now, Uncounted& seen);
  bool SweepThreads(pid_t pid, std::uint64_t deadline);
  bool SweepProcess(pid_t pid, std::uint64_t deadline);
  void NoteHidden(pid_t pid);
  bool IsBeforeExec(pid_t pid) const;
  void JudgeHidden(std::uint64_t now);

  pid_t init_ = -1;
  Above above_;
  Sockets sockets_;
  std::uint64_t enough_ = 0;
  std::uint64_t most_open_ = ~std::uint64_t{0};
  std::uint64_t swept_at_ = 0;                  ///< When all open files were looked at last.
  std::vector<pid_t> unswept_;                  ///< Of the processes that there were when the last sweep began.
  int hidden_sweeps_ = 0;                       ///< One after the other that found hidden processes.
  std::map<pid_t, std::uint64_t> before_exec_;  ///< Of the last sweep: hidden ones that may be so, and since when.
  std::set<pid_t> found_before_exec_;           ///< Of this sweep.
  bool hides_ = false;                          ///< One of them does so for too long.
  int swept_fd_ = -1;                           ///< Of the last of them, the last descriptor that was.
  pid_t swept_thread_ = 0;                      ///< The same of its threads.
  bool grows_ = false;                          ///< The kernel's memory, since the last sweep.
  base::UniqueFd diag_;
  std::function<bool(pid_t)> may_hide_;
  Uncounted found_;                               ///< What their open files had.
  std::set<std::uint64_t> senders_;               ///< Sockets among them from which descriptors are on their way.
  std::uint64_t least_slab_ = ~std::uint64_t{0};  ///< Memory of the kernel, all of the host, when it was smallest.
};

}  // namespace belljar::launch
