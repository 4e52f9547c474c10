// sys/tracee.h: following processes by ptrace(2), as typed calls. Linux 5.3 (PTRACE_GET_SYSCALL_INFO).
//
// A tracer is a thread: the one that seized a process is the only one that may wait for it or resume it. When it ends,
// all that it still follows is killed, so that nothing runs on unseen.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace belljar::sys {

/// Begins to follow a process, its threads and all that it will start. 0, or the errno.
int Seize(pid_t pid);

/// One change of state of something that this thread follows, or of a child of this thread.
struct TraceStop {
  enum class Kind : std::uint8_t {
    kGone,       ///< Ended, and reaped as far as this thread is concerned.
    kCall,       ///< About to make a call that a filter answered with SECCOMP_RET_TRACE.
    kCallEnd,    ///< Back from such a call, when it was resumed by kToCallEnd.
    kExec,       ///< Is another program now; see FormerThread.
    kSignal,     ///< About to get `signal`.
    kGroupStop,  ///< Stopped by job control; stays so until SIGCONT.
    kOther,      ///< Nothing to know about: only to be resumed.
  };
  Kind kind = Kind::kOther;
  pid_t pid = 0;
  int signal = 0;
};

/// Blocks; nothing when this thread has neither children nor anything that it follows. Children of other threads are
/// not touched.
std::optional<TraceStop> WaitForTraceStop();

enum class Resume : std::uint8_t {
  kRun,        ///< Until the next stop.
  kToCallEnd,  ///< From kCall: until that call is done.
  kListen,     ///< From kGroupStop: stays stopped, as without a tracer.
};
/// `signal` is what it gets with it; 0: none. Fails without a word where the process was killed meanwhile.
void ResumeTracee(pid_t pid, Resume how, int signal = 0);

struct TracedRegisters {
  int number = -1;
  std::array<std::uint64_t, 6> arguments{};
};
/// In a kCall stop.
std::optional<TracedRegisters> ReadCall(pid_t pid);
/// In a kCallEnd stop: what the call returned, negative for an errno.
std::optional<std::int64_t> ReadCallResult(pid_t pid);
/// In a kExec stop: the thread that called exec; it has the id of its process now.
pid_t FormerThread(pid_t pid);

/// Reads up to buffer.size() bytes and stops at the first page that is not there; the number read. What it gives may be
/// changing while it is read: for records, never for decisions.
std::size_t ReadMemory(pid_t pid, std::uint64_t address, std::span<char> buffer);

/// A child of the calling thread that does nothing and ends as soon as the write end of `lifeline` is closed: its end
/// wakes WaitForTraceStop, which no other thread can do. -1 with errno.
pid_t StartWaker(int lifeline);

}  // namespace belljar::sys
