#include "sys/process.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include <fmt/format.h>

#include "sys/files.h"
#include "sys/proc_text.h"

#ifdef __SANITIZE_THREAD__
extern "C" void AnnotateIgnoreReadsBegin(const char* file, int line);
extern "C" void AnnotateIgnoreWritesBegin(const char* file, int line);
#endif

namespace belljar::sys {

namespace {

// The thread sanitizer takes a child by a bare clone for the thread that made it, and its own copy of memory for the
// one it shares with threads that it does not have: every race it would tell of there is none.
pid_t OneThreadIn(pid_t pid) {
#ifdef __SANITIZE_THREAD__
  if (pid == 0) {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
#endif
  return pid;
}

// The order of the last two arguments is the architecture's.
pid_t OldClone(const CloneOptions& options) {
  if (options.cgroup_fd >= 0) {
    errno = ENOSYS;
    return -1;
  }
  const std::uint64_t flags = options.flags | (options.pidfd != nullptr ? CLONE_PIDFD : 0);
  return static_cast<pid_t>(::syscall(SYS_clone, flags, nullptr, options.pidfd, nullptr, nullptr));
}

}  // namespace

bool HasClone3() { return ::syscall(SYS_clone3, nullptr, 0) < 0 && errno != ENOSYS; }

pid_t Clone(const CloneOptions& options) {
  clone_args arguments{};
  arguments.flags = options.flags;
  if (options.pidfd != nullptr) {
    arguments.flags |= CLONE_PIDFD;
    arguments.pidfd = reinterpret_cast<std::uintptr_t>(options.pidfd);
  }
  if (options.cgroup_fd >= 0) {
    arguments.flags |= CLONE_INTO_CGROUP;
    arguments.cgroup = static_cast<std::uint64_t>(options.cgroup_fd);
  }
  const auto pid = static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
  return OneThreadIn(pid < 0 && errno == ENOSYS ? OldClone(options) : pid);
}

BlockedSignals::BlockedSignals() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before_);
}

BlockedSignals::~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

BlockedSigpipe::BlockedSigpipe() {
  sigset_t pending;
  ::sigpending(&pending);
  was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
  sigset_t pipe;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, &before_);
}

BlockedSigpipe::~BlockedSigpipe() {
  if (!was_pending_) {
    sigset_t pipe;
    ::sigemptyset(&pipe);
    ::sigaddset(&pipe, SIGPIPE);
    const timespec now{};
    while (::sigtimedwait(&pipe, nullptr, &now) > 0) {
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool IsOpen(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

bool Exists(pid_t pid) { return ::kill(pid, 0) == 0 || errno != ESRCH; }

pid_t ParentOf(pid_t pid) { return ParentPid(ReadSmallFile(fmt::format("/proc/{}/stat", pid), 4096).value_or("")); }

int SendSignal(int pidfd, int signal) {
  return static_cast<int>(::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0));
}

ArgumentArea FindArgumentArea() {
  // Fields 48 to 51 of proc_pid_stat(5): arg_start, arg_end, env_start, env_end. The name in field 2 may hold spaces.
  const auto text = ReadSmallFile("/proc/self/stat", 4096);
  if (!text) return {};
  std::size_t at = text->rfind(')');
  for (int field = 2; field < 48 && at != std::string::npos; ++field) at = text->find(' ', at + 1);
  if (at == std::string::npos) return {};
  unsigned long long bounds[4] = {};
  if (std::sscanf(text->c_str() + at, "%llu %llu %llu %llu", &bounds[0], &bounds[1], &bounds[2], &bounds[3]) != 4) {
    return {};
  }
  if (bounds[0] == 0 || bounds[3] < bounds[0]) return {};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel tells addresses as numbers
  return {reinterpret_cast<char*>(bounds[0]), reinterpret_cast<char*>(bounds[3])};
}

Error ErrnoError(std::string step, int code, std::string hint) {
  return {.step = std::move(step), .message = std::strerror(code), .hint = std::move(hint), .code = code};
}

bool IsAlone() {
  siginfo_t info{};
  if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 || errno != ECHILD) return false;
  // A directory has a link for its name, its "." and each directory in it; here there is one for each thread.
  struct stat tasks{};
  return ::stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3;
}

Reaper AdoptOrphans(Reaper by) {
  int before = 0;
  ::prctl(PR_GET_CHILD_SUBREAPER, &before, 0, 0, 0);
  ::prctl(PR_SET_CHILD_SUBREAPER, by == Reaper::kSelf ? 1 : 0, 0, 0, 0);
  return before != 0 ? Reaper::kSelf : Reaper::kOthers;
}

std::uint64_t NowNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

std::string MakeRunId() {
  std::uint64_t number = 0;
  (void)!::getrandom(&number, sizeof number, 0);
  return fmt::format("{}-{:012x}", ::getpid(), number & 0xffff'ffff'ffffULL);
}

std::string MakeUuid() {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  std::uint64_t numbers[2] = {};
  (void)!::getrandom(numbers, sizeof numbers, 0);
  high = (numbers[0] & ~0xf000ULL) | 0x4000ULL;
  low = (numbers[1] >> 2) | (1ULL << 63);
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff, high & 0xffff, low >> 48,
                     low & 0xffff'ffff'ffffULL);
}

}  // namespace belljar::sys
