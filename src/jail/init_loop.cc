// Sandbox init after the start: reaps, keeps the deadline, ends everything. The one arbiter of how a run ended: exit
// and deadline can't both be reported, because one thread reports one of them.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "jail/context.h"
#include "jail/sweep.h"

namespace belljar::jail {
namespace {

void MeasureDisks(const Context& context, plan::Report& report) {
  int index = 0;
  for (const std::uint32_t* path = plan::Offsets(context.plan, context.plan.disk_paths);
       *path != 0 && index < plan::kMaxDisks; ++path, ++index) {
    struct statfs status;
    if (statfs(plan::Text(context.plan, *path), &status) != 0) continue;
    plan::DiskUse& use = report.disk[index];
    use.used_bytes = (status.f_blocks - status.f_bfree) * static_cast<std::uint64_t>(status.f_bsize);
    use.full_bytes = status.f_blocks != 0 && status.f_bfree == 0 ? 1 : 0;
    use.full_inodes = status.f_files != 0 && status.f_ffree == 0 ? 1 : 0;
  }
}

// Ends all but init itself, or all of its command but the steward, so that the report that follows is the last word:
// the parent need not wait for the rest. False when something is killed and has not ended.
bool EndAll(const Context& context) {
  if (context.plan.init_is_pid1 == 0 || context.steward) {
    return KillChildren(context.plan.scoped != 0 ? Kin::kAllInScope : Kin::kChildren);
  }
  if (kill(-1, SIGKILL) == 0) {  // All in the pid namespace at once, under a lock that no fork gets around.
    while (waitpid(-1, nullptr, __WALL) > 0 || errno == EINTR) {
    }
  }
  return true;
}

void MeasureChildren(plan::Report& report) {
  struct rusage usage = {};
  if (getrusage(RUSAGE_CHILDREN, &usage) != 0) return;
  const auto nanoseconds = [](const struct timeval& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_usec) * 1000;
  };
  report.cpu_ns = nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime);
  report.memory_peak = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

// Does what the parent asks for while the command runs. What comes too late, or makes no sense, is nobody's mistake.
void TakeOrder(const Context& context, int command) {
  plan::Order order = {};
  const ssize_t got = recv(context.fds[plan::kControlSlot], &order, sizeof order, MSG_DONTWAIT);
  if (got != static_cast<ssize_t>(sizeof order)) return;
  switch (order.kind) {
    case plan::OrderKind::kSignal: kill(-command, order.signal); return;
    case plan::OrderKind::kResize: (void)ResizeTerminal(context, order.rows, order.columns); return;
  }
}

// Whether the command exited and left something that is to go on. Reaps what has ended.
bool LeavesBackground(const Context& context, int status) {
  if (!context.steward || context.command->keeps == 0 || !WIFEXITED(status)) return false;
  pid_t ended = 0;
  while ((ended = waitpid(-1, nullptr, WNOHANG)) > 0 || (ended < 0 && errno == EINTR)) {
  }
  return ended == 0;
}

// A steward whose command is told as ended, and which still answers for what that left: nobody else may adopt it.
// Nobody talks to it any more; it goes with the last of them, or with init.
[[noreturn]] void StayForBackground(Context& context, plan::Report& report) {
  report.background = 1;
  MeasureDisks(context, report);
  MeasureChildren(report);
  SendReport(context, report, -1);
  close(context.fds[plan::kControlSlot]);
  close(context.terminal);
  for (;;) {
    const pid_t ended = waitpid(-1, nullptr, 0);
    if (ended < 0 && errno == ECHILD) _exit(0);
  }
}

enum class Reaped { kOthers, kCommand, kLost };

// Reaps all that ended. kLost: the command's status can't be had any more, so nobody can say how it ended.
Reaped Reap(int command, int* status) {
  for (;;) {
    int ended = 0;
    const pid_t pid = waitpid(-1, &ended, WNOHANG);
    if (pid == 0) return Reaped::kOthers;
    if (pid < 0 && errno != EINTR) return Reaped::kLost;
    if (pid != command) continue;
    *status = ended;
    return Reaped::kCommand;
  }
}

}  // namespace

std::uint64_t NowNs() {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

struct timespec Until(std::uint64_t time) {
  struct timespec left = {};
  const std::uint64_t now = NowNs();
  if (now >= time) return left;
  left.tv_sec = static_cast<time_t>((time - now) / 1'000'000'000);
  left.tv_nsec = static_cast<long>((time - now) % 1'000'000'000);
  return left;
}

void Finish(Context& context, plan::Report* report) {
  const bool all = EndAll(context);
  // SECURITY: what a steward leaves would be init's child, without deadline; init ends the sandbox for it.
  if (!all && context.steward) _exit(kSurvivors);
  if (report != nullptr) {
    report->left = all ? 0 : 1;
    MeasureDisks(context, *report);
    MeasureChildren(*report);
    SendReport(context, *report, -1);
  }
  _exit(0);
}

Wish ParentsWish(const Context& context, const struct pollfd& control) {
  if ((control.revents & (POLLHUP | POLLERR)) != 0) return Wish::kGone;
  struct signalfd_siginfo info;
  Wish wish = (control.revents & POLLRDHUP) != 0 ? Wish::kEnd : Wish::kNone;
  while (read(context.signals, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    // SECURITY: a guest may send SIGTERM too. To pid 1 of a namespace only a sender from outside has no pid, and only
    // the kernel may say SI_USER for somebody else. Elsewhere a parent that is gone is no longer the parent.
    if (info.ssi_signo != SIGTERM) continue;
    const bool outside = info.ssi_pid == 0 && info.ssi_code == SI_USER;
    if (context.plan.init_is_pid1 != 0 ? outside : getppid() != context.parent) wish = Wish::kGone;
  }
  return wish;
}

int WatchSignals() {
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGCHLD);
  sigaddset(&watched, SIGTERM);
  return signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
}

void InitLoop(Context& context, int command) {
  // The terminal stays open: a guest that has closed it may open it again, and is not hung up meanwhile.
  const std::uint64_t wall = context.steward ? context.command->wall_ns : context.plan.wall_ns;
  const std::uint64_t deadline = wall == plan::kNoDeadline ? wall : NowNs() + wall;
  plan::Report report = {};
  for (;;) {
    const Reaped reaped = Reap(command, &report.status);
    if (reaped == Reaped::kLost) Finish(context, nullptr);
    // SECURITY: a command that has seen what was covered does not get away with it by ending first.
    if (reaped == Reaped::kCommand) context.covers_due = 0;
    if (!CoversHold(context, report)) Finish(context, &report);
    const bool late = deadline != plan::kNoDeadline && NowNs() >= deadline;
    if (reaped == Reaped::kCommand || late) {
      report.kind = reaped == Reaped::kCommand ? plan::ReportKind::kEnded : plan::ReportKind::kDeadline;
      if (reaped == Reaped::kCommand && LeavesBackground(context, report.status)) StayForBackground(context, report);
      Finish(context, &report);
    }
    const std::uint64_t next = deadline < context.covers_due ? deadline : context.covers_due;
    const struct timespec left = Until(next);
    struct pollfd events[3] = {{context.fds[plan::kControlSlot], POLLIN | kWishEvents, 0},
                               {context.signals, POLLIN, 0},
                               {context.mounts, kMountEvents, 0}};
    ppoll(events, 3, next == plan::kNoDeadline ? nullptr : &left, nullptr);
    if (events[2].revents != 0) context.covers_due = 0;
    switch (ParentsWish(context, events[0])) {
      case Wish::kNone: break;
      case Wish::kEnd: report.kind = plan::ReportKind::kStopped; Finish(context, &report);
      case Wish::kGone: Finish(context, nullptr);
    }
    if ((events[0].revents & POLLIN) != 0) TakeOrder(context, command);
  }
}

}  // namespace belljar::jail
