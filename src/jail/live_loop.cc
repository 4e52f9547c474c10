// Init of a live sandbox, and the stewards of its commands. Init starts a steward for each command; a steward is the
// subreaper of one command and does for it what init does for the only command of another sandbox.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jail/context.h"

namespace belljar::jail {
namespace {

int BecomeSteward(Context& context) {
  close(context.signals);
  close(context.mounts);  // That is init's to watch; a steward looks when its command ends.
  context.mounts = -1;
  context.covers_due = plan::kNoDeadline;
  context.signals = WatchSignals();
  if (context.signals < 0) return -1;
  if (prctl(PR_SET_NAME, "belljar-steward", 0, 0, 0) != 0) return -1;
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return -1;
  if (context.plan.scoped == 0) return 0;
  // SECURITY: what it starts can signal neither it nor another command, and it can kill all it may signal.
  plan::Step scope = {};
  scope.op = plan::Op::kScopeSignals;
  return DoStep(context, scope);
}

int OpenCommandsTerminal(Context& context) {
  if (OpenTerminal(context) != 0) return -1;
  const plan::CommandBlock& command = *context.command;
  return command.rows == 0 ? 0 : ResizeTerminal(context, command.rows, command.columns);
}

void TellFailure(const Context& context) {
  plan::Report report = {};
  report.kind = plan::ReportKind::kSetupFailed;
  report.step = static_cast<int>(context.plan.step_count) - 1;
  report.error = errno;
  (void)SendReport(context, report, -1);
}

[[noreturn]] void FailToStart(const Context& context) {
  TellFailure(context);
  _exit(0);
}

// `context.fds` has the command's own control socket already.
[[noreturn]] void Steward(Context& context, plan::Hire hire) {
  context.steward = true;
  if (BecomeSteward(context) != 0) FailToStart(context);
  int command = -1;
  if (hire == plan::Hire::kAhead) {
    command = PrepareCommand(context);
    if (command < 0) FailToStart(context);
  } else {
    if (!ReceiveCommand(context)) _exit(0);
    if (context.command->terminal != 0 && OpenCommandsTerminal(context) != 0) FailToStart(context);
    command = StartCommand(context);
    if (command < 0) _exit(0);
  }
  InitLoop(context, command);
}

void StartSteward(Context& context, int control, plan::Hire hire) {
  const int own = context.fds[plan::kControlSlot];
  context.fds[plan::kControlSlot] = control;
  const auto pid = static_cast<int>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (pid == 0) {
    close(own);
    Steward(context, hire);
  }
  if (pid < 0) TellFailure(context);
  context.fds[plan::kControlSlot] = own;
  close(control);
}

// Stewards, and whom one that was killed has left. SECURITY: nobody knows any more which of those was whose, and no
// deadline is kept for them; so that is the end of the sandbox.
void ReapStewards(Context& context) {
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(-1, &status, WNOHANG)) > 0 || (ended < 0 && errno == EINTR)) {
    if (ended <= 0 || status == 0) continue;
    plan::Report report = {};
    report.kind = plan::ReportKind::kSurvivors;
    Finish(context, &report);
  }
}

}  // namespace

void LiveLoop(Context& context) {
  plan::Report report = {};
  report.kind = plan::ReportKind::kPrepared;
  if (TakeStreamNumbers() != 0 || SendReport(context, report, -1) != 0) _exit(125);
  for (;;) {
    ReapStewards(context);
    if (!CoversHold(context, report)) Finish(context, &report);
    const struct timespec left = Until(context.covers_due);
    struct pollfd events[3] = {{context.fds[plan::kControlSlot], POLLIN | kWishEvents, 0},
                               {context.signals, POLLIN, 0},
                               {context.mounts, kMountEvents, 0}};
    ppoll(events, 3, context.covers_due == plan::kNoDeadline ? nullptr : &left, nullptr);
    if (events[2].revents != 0) context.covers_due = 0;
    switch (ParentsWish(context, events[0])) {
      case Wish::kNone: break;
      case Wish::kEnd: report.kind = plan::ReportKind::kStopped; Finish(context, &report);
      case Wish::kGone: Finish(context, nullptr);
    }
    if ((events[0].revents & POLLIN) == 0) continue;
    int control = -1;  // Of one more command.
    char hire = 0;
    if (ReceiveDescriptors(context, &control, 1, MSG_DONTWAIT, &hire) != 1) continue;
    StartSteward(context, control, static_cast<plan::Hire>(hire));
  }
}

}  // namespace belljar::jail
