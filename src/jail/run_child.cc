// Executes init's part of the plan, starts the command, and stays as pid 1.
#include "jail/run_child.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace belljar::jail {

int DoStep(Context& context, const plan::Step& step) {
  context.detail = 0;
  switch (step.op) {
    case plan::Op::kPrivateMounts:
    case plan::Op::kNewRoot:
    case plan::Op::kHostRoot:
    case plan::Op::kDirectory:
    case plan::Op::kSymlink:
    case plan::Op::kFile:
    case plan::Op::kMountPoint:
    case plan::Op::kBind:
    case plan::Op::kTmpfs:
    case plan::Op::kDevice:
    case plan::Op::kProc:
    case plan::Op::kDevpts:
    case plan::Op::kTerminals:
    case plan::Op::kMaskSource:
    case plan::Op::kMask:
    case plan::Op::kReadOnly:
    case plan::Op::kSameFile:
    case plan::Op::kSealRoot:
    case plan::Op::kPivot: return DoFileStep(context, step);
    case plan::Op::kCovered: return 0;
    case plan::Op::kWatchCovers: return WatchCovers(context);
    case plan::Op::kBecome: return Become(context, step);
    case plan::Op::kLandlockRules:
    case plan::Op::kLandlockAllow:
    case plan::Op::kLandlockEnforce:
    case plan::Op::kTraceFilter:
    case plan::Op::kSeccomp:
    case plan::Op::kRlimit:
    case plan::Op::kCommandRlimit:
    case plan::Op::kScopeSignals:
    case plan::Op::kAffinity:
    case plan::Op::kDropCapabilities:
    case plan::Op::kNoNewPrivileges: return DoFilterStep(context, step);
    default: return DoIdentityStep(context, step);
  }
}

int SendReport(const Context& context, const plan::Report& report, int fd) {
  struct iovec part = {const_cast<plan::Report*>(&report), sizeof report};
  struct msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  struct rlimit before = {};
  const bool raised = fd >= 0 && getrlimit(RLIMIT_NOFILE, &before) == 0;
  if (raised) {
    // SECURITY: descriptors on their way are counted for a whole user, and held against the limit of whoever sends one
    // more. With the limit of a guest any other guest of this user could use them up and keep this one from starting.
    const struct rlimit most = {before.rlim_max, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &most);
  }
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    struct cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
  }
  // A full socket buffer can't happen: a run sends fewer reports than it holds.
  ssize_t sent = 0;
  while ((sent = sendmsg(context.fds[plan::kControlSlot], &message, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
  }
  const int error = errno;
  if (raised && setrlimit(RLIMIT_NOFILE, &before) != 0) return -1;
  errno = error;
  return sent < 0 ? -1 : 0;
}

void RunChild(const plan::LaunchPlan& plan, const int* fds, int fd_count, CallerStrings caller) {
  Context context = {.plan = plan, .fds = {}, .caller = caller};
  for (int i = 0; i < plan::kMaxSlots; ++i) context.fds[i] = i < fd_count ? fds[i] : -1;
  RunSteps(context, 0);
}

void RunSteps(Context& context, std::uint32_t first) {
  const plan::LaunchPlan& plan = context.plan;
  context.parent = getppid();
  // A caller that ignores SIGCHLD would have init's children reaped by the kernel, and init would wait for them for
  // ever.
  struct sigaction by_default = {};
  by_default.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &by_default, nullptr);

  for (std::uint32_t i = first; i < plan.step_count; ++i) {
    const plan::Step& step = plan::Steps(plan)[i];
    if (step.op >= plan::kFirstCommandOp) break;
    if (DoStep(context, step) == 0) continue;
    plan::Report report = {};
    report.kind = plan::ReportKind::kSetupFailed;
    report.step = static_cast<int>(i);
    report.error = errno;
    report.detail = context.detail;
    SendReport(context, report, -1);
    _exit(125);
  }
  context.signals = WatchSignals();
  if (context.signals < 0) {
    plan::Report report = {};
    report.kind = plan::ReportKind::kSetupFailed;
    report.step = static_cast<int>(plan.step_count) - 1;
    report.error = errno;
    (void)SendReport(context, report, -1);
    _exit(125);
  }
  if (plan.live != 0) LiveLoop(context);
  context.command = plan::OwnCommand(plan);
  const int command = context.command == nullptr ? PrepareCommand(context) : StartCommand(context);
  if (command < 0) _exit(125);
  InitLoop(context, command);
}

}  // namespace belljar::jail
