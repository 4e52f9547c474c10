#include "sys/tracee.h"

#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "sys/process.h"

namespace belljar::sys {
namespace {

constexpr std::uintptr_t kPage = 4096;  // The smallest there is; larger ones are only read in more pieces.
constexpr int kOptions = PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                         PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD;
constexpr int kCallEndSignal = SIGTRAP | 0x80;  // PTRACE_O_TRACESYSGOOD

bool StopsAGroup(int signal) {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

void* Address(std::uint64_t number) {
  return reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr): registers hold addresses as numbers
}

std::optional<__ptrace_syscall_info> CallInfo(pid_t pid) {
  __ptrace_syscall_info info{};
  const long size = ::ptrace(PTRACE_GET_SYSCALL_INFO, pid, Address(sizeof info), &info);
  if (size <= 0) return std::nullopt;
  return info;
}

TraceStop Understand(pid_t pid, int status) {
  using Kind = TraceStop::Kind;
  if (!WIFSTOPPED(status)) return {.kind = Kind::kGone, .pid = pid};
  const int signal = WSTOPSIG(status);
  switch (static_cast<unsigned>(status) >> 16) {
    case 0:
      if (signal == kCallEndSignal) return {.kind = Kind::kCallEnd, .pid = pid};
      return {.kind = Kind::kSignal, .pid = pid, .signal = signal};
    case PTRACE_EVENT_SECCOMP: return {.kind = Kind::kCall, .pid = pid};
    case PTRACE_EVENT_EXEC: return {.kind = Kind::kExec, .pid = pid};
    case PTRACE_EVENT_STOP:
      // The same event tells of a new thread and of the end of a stop; then the signal is SIGTRAP.
      if (StopsAGroup(signal)) return {.kind = Kind::kGroupStop, .pid = pid};
      return {.kind = Kind::kOther, .pid = pid};
    default: return {.kind = Kind::kOther, .pid = pid};
  }
}

}  // namespace

int Seize(pid_t pid) { return ::ptrace(PTRACE_SEIZE, pid, nullptr, Address(kOptions)) == 0 ? 0 : errno; }

std::optional<TraceStop> WaitForTraceStop() {
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, __WALL | __WNOTHREAD)) < 0 && errno == EINTR) {
  }
  if (pid < 0) return std::nullopt;
  return Understand(pid, status);
}

void ResumeTracee(pid_t pid, Resume how, int signal) {
  __ptrace_request request = PTRACE_CONT;
  if (how == Resume::kToCallEnd) request = PTRACE_SYSCALL;
  if (how == Resume::kListen) request = PTRACE_LISTEN;
  (void)::ptrace(request, pid, nullptr, Address(static_cast<std::uint64_t>(signal)));
}

std::optional<TracedRegisters> ReadCall(pid_t pid) {
  const auto info = CallInfo(pid);
  if (!info || info->op != PTRACE_SYSCALL_INFO_SECCOMP) return std::nullopt;
  TracedRegisters registers{.number = static_cast<int>(info->seccomp.nr), .arguments = {}};
  std::ranges::copy(info->seccomp.args, registers.arguments.begin());
  return registers;
}

std::optional<std::int64_t> ReadCallResult(pid_t pid) {
  const auto info = CallInfo(pid);
  if (!info || info->op != PTRACE_SYSCALL_INFO_EXIT) return std::nullopt;
  return info->exit.rval;
}

pid_t FormerThread(pid_t pid) {
  unsigned long former = 0;
  if (::ptrace(PTRACE_GETEVENTMSG, pid, nullptr, &former) != 0) return pid;
  return static_cast<pid_t>(former);
}

std::size_t ReadMemory(pid_t pid, std::uint64_t address, std::span<char> buffer) {
  // One piece a page: a piece is read as a whole or not at all (process_vm_readv(2)).
  std::array<iovec, 4> pieces{};
  std::size_t count = 0;
  std::size_t wanted = 0;
  while (wanted < buffer.size() && count < pieces.size()) {
    const std::uint64_t at = address + wanted;
    if (at < address) break;  // Beyond the end of all memory.
    const std::size_t size = std::min<std::size_t>(buffer.size() - wanted, kPage - at % kPage);
    pieces[count++] = {Address(at), size};
    wanted += size;
  }
  const iovec ours{buffer.data(), wanted};
  const ssize_t got = ::process_vm_readv(pid, &ours, 1, pieces.data(), count, 0);
  return got < 0 ? 0 : static_cast<std::size_t>(got);
}

pid_t StartWaker(int lifeline) {
  const pid_t pid = Clone({});
  if (pid != 0) return pid;
  // Holds nothing of its owner, or the guest's output would never end.
  const auto keep = static_cast<unsigned>(lifeline);
  if (keep > 0) ::close_range(0, keep - 1, 0);
  ::close_range(keep + 1, ~0U, 0);
  ::prctl(PR_SET_NAME, "belljar-waker", 0, 0, 0);
  char byte = 0;
  while (::read(lifeline, &byte, 1) < 0 && errno == EINTR) {
  }
  ::_exit(0);
}

}  // namespace belljar::sys
