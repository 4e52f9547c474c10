#include "doctor/probe_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fmt/format.h>

#include <csignal>
#include <cstring>

#include "base/unique_fd.h"

namespace belljar::doctor {
namespace {

using Clock = std::chrono::steady_clock;

// What travels over the pipe: the body's own report, or how the inner child ended without one.
struct Message {
  Finding report;
  int signal = 0;
};

void Send(int fd, const Message& message) {
  // Smaller than PIPE_BUF: written whole or not at all.
  [[maybe_unused]] ssize_t written = ::write(fd, &message, sizeof message);
}

void DieWithParent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above; then nobody waits for an answer. In a new pid namespace the
  // parent is invisible and reads as 0, so that case can't be told apart: the pipe's other end will.
  if (pid_t now = ::getppid(); now != parent && now != 0) ::_exit(1);
}

[[noreturn]] void RunOuter(int fd, unsigned long clone_flags, internal::Body body, const void* context) {
  if (clone_flags == 0) {
    Send(fd, {.report = body(context)});
    ::_exit(0);
  }
  const pid_t self = ::getpid();
  const long inner = RawFork(clone_flags);
  if (inner == 0) {
    DieWithParent(self);
    Send(fd, {.report = body(context)});
    ::_exit(0);
  }
  if (inner < 0) {
    Send(fd, {.report = Finding::Failed(kStepClone)});
    ::_exit(0);
  }
  int status = 0;
  while (::waitpid(static_cast<pid_t>(inner), &status, __WALL) < 0 && errno == EINTR) {
  }
  // Had the body reported, that message is first in the pipe and this one is never read.
  if (WIFSIGNALED(status)) Send(fd, {.report = Finding::Failed("run"), .signal = WTERMSIG(status)});
  ::_exit(0);
}

enum class Wait : std::uint8_t { kMessage, kNothing, kTimeout };

Wait ReadMessage(int fd, Message* message, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return Wait::kTimeout;
    pollfd ready{.fd = fd, .events = POLLIN};
    const int count = ::poll(&ready, 1, static_cast<int>(left.count()));
    if (count == 0) return Wait::kTimeout;
    if (count < 0) continue;
    const ssize_t got = ::read(fd, message, sizeof *message);
    if (got < 0 && errno == EINTR) continue;
    return got == static_cast<ssize_t>(sizeof *message) ? Wait::kMessage : Wait::kNothing;
  }
}

// Until both children have let go of the pipe, so that no namespace, mount or cgroup of theirs outlives the probe.
void AwaitEnd(int fd, Clock::time_point deadline) {
  Message rest;
  while (ReadMessage(fd, &rest, deadline) == Wait::kMessage) {
  }
}

// Kills and reaps. A process in uninterruptible sleep doesn't die at once; doctor must still end, so this gives up
// after a second and leaves the corpse to init.
int Reap(pid_t pid) {
  ::kill(pid, SIGKILL);
  int status = 0;
  for (int i = 0; i < 1000; ++i) {
    const pid_t got = ::waitpid(pid, &status, __WALL | WNOHANG);
    if (got == pid || (got < 0 && errno != EINTR)) return status;
    ::usleep(i < 50 ? 100 : 1000);
  }
  return status;
}

}  // namespace

long RawFork(unsigned long clone_flags) { return ::syscall(SYS_clone, clone_flags, nullptr, nullptr, nullptr, 0); }

std::string Trial::Text() const {
  switch (end) {
    case End::kPassed: return {};
    case End::kFailed: return fmt::format("{}: {}", step, std::strerror(error));
    case End::kKilled:
      return signal == SIGSYS ? "killed by a seccomp filter" : fmt::format("killed by signal {}", signal);
    case End::kTimedOut: break;
  }
  return "no answer in time";
}

namespace internal {

Trial TryInChild(unsigned long clone_flags, Body body, const void* context, std::chrono::milliseconds timeout) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {.step = "pipe", .error = errno};
  base::UniqueFd read_end(ends[0]);
  base::UniqueFd write_end(ends[1]);
  const pid_t self = ::getpid();
  const long child = RawFork();
  if (child < 0) return {.step = "fork", .error = errno};
  if (child == 0) {
    DieWithParent(self);
    RunOuter(write_end.get(), clone_flags, body, context);
  }
  write_end.Reset();
  Message message;
  const Clock::time_point deadline = Clock::now() + timeout;
  const Wait wait = ReadMessage(read_end.get(), &message, deadline);
  if (wait == Wait::kMessage) AwaitEnd(read_end.get(), deadline);
  const int status = Reap(static_cast<pid_t>(child));
  if (wait == Wait::kTimeout) return {.end = Trial::End::kTimedOut};
  if (wait == Wait::kNothing) {
    return {.end = Trial::End::kKilled, .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0};
  }
  if (message.signal != 0) return {.end = Trial::End::kKilled, .signal = message.signal};
  if (message.report.step == nullptr) return {.end = Trial::End::kPassed, .value = message.report.value};
  return {.end = Trial::End::kFailed, .step = message.report.step, .error = message.report.error};
}

}  // namespace internal
}  // namespace belljar::doctor
