// Starts the command: the last steps run in a child that shares init's memory until it execs.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jail/context.h"

namespace belljar::jail {
namespace {

constexpr std::size_t kStackSize = 32 * 1024;

struct Start {
  Context* context;
  char** vectors;
  plan::Report failure;
  int failed;
};

void ResetSignals() {
  // Ignored signals survive exec: the guest must not inherit that its caller ignores SIGPIPE.
  struct sigaction by_default = {};
  by_default.sa_handler = SIG_DFL;
  for (int number = 1; number <= 64; ++number) sigaction(number, &by_default, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

int Stdio(Context& context) {
  for (int fd = 0; fd <= 2; ++fd) {
    context.detail = fd;
    const int from = context.plan.terminal != 0 ? context.terminal : context.fds[fd];
    if (dup2(from, fd) != fd) return -1;
  }
  return 0;
}

int NewSession(Context& context, const plan::Step& step) {
  if (setsid() < 0) return -1;
  context.detail = 1;
  return step.value == 1 ? ioctl(context.terminal, TIOCSCTTY, 0) : 0;
}

// As execvp does: the first candidate that is there decides, one that may not be executed is remembered.
int Exec(Context& context, char** argv, char** envp) {
  int result = ENOENT;
  for (const std::uint32_t* path = plan::Offsets(context.plan, context.plan.exec_paths); *path != 0; ++path) {
    execve(plan::Text(context.plan, *path), argv, envp);
    if (errno == EACCES) result = EACCES;
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) return errno;
  }
  return result;
}

int DoCommandStep(Context& context, const plan::Step& step) {
  context.detail = 0;
  switch (step.op) {
    case plan::Op::kNewSession: return NewSession(context, step);
    case plan::Op::kStdio: return Stdio(context);
    case plan::Op::kWorkdir: return chdir(plan::Text(context.plan, step.text));
    default: return DoStep(context, step);
  }
}

int RunCommand(void* argument) {
  auto& start = *static_cast<Start*>(argument);
  Context& context = *start.context;
  start.failed = 1;
  for (std::uint32_t i = 0; i < context.plan.step_count; ++i) {
    const plan::Step& step = plan::Steps(context.plan)[i];
    if (step.op < plan::kFirstCommandOp) continue;
    if (step.op == plan::Op::kExec) {
      ResetSignals();
      if (context.umask >= 0) umask(static_cast<mode_t>(context.umask));
      char** envp = start.vectors;
      while (*envp != nullptr) ++envp;
      start.failure.kind = plan::ReportKind::kExecFailed;
      start.failure.step = static_cast<int>(i);
      start.failure.error = Exec(context, start.vectors, envp + 1);
      _exit(127);
    }
    if (DoCommandStep(context, step) == 0) continue;
    start.failure.kind = plan::ReportKind::kSetupFailed;
    start.failure.step = static_cast<int>(i);
    start.failure.error = errno;
    start.failure.detail = context.detail;
    _exit(125);
  }
  _exit(125);
}

}  // namespace

int StartCommand(Context& context) {
  // On init's stack: there is no heap here, and the child borrows it only until it execs. argv and envp lie one behind
  // the other; the plan's compiler bounds their number.
  const std::uint32_t lists[] = {context.plan.argv, context.plan.envp};
  std::size_t count = 0;
  for (const std::uint32_t list : lists) {
    for (const std::uint32_t* offset = plan::Offsets(context.plan, list); *offset != 0; ++offset) ++count;
    ++count;
  }
  auto** vectors = static_cast<char**>(__builtin_alloca(count * sizeof(char*)));
  char** next = vectors;
  for (const std::uint32_t list : lists) {
    for (const std::uint32_t* offset = plan::Offsets(context.plan, list); *offset != 0; ++offset) {
      *next++ = const_cast<char*>(plan::Text(context.plan, *offset));
    }
    *next++ = nullptr;
  }
  alignas(16) [[gnu::uninitialized]] char stack[kStackSize];
  Start start = {&context, vectors, {}, 0};
  // CLONE_VFORK: init sleeps until the child has exec'd or ended, and then knows which of the two it was.
  const int pid = clone(RunCommand, stack + kStackSize, CLONE_VM | CLONE_VFORK | SIGCHLD, &start);
  if (pid < 0) {
    start.failure.kind = plan::ReportKind::kSetupFailed;
    start.failure.step = static_cast<int>(context.plan.step_count) - 1;
    start.failure.error = errno;
    start.failure.detail = -1;
    SendReport(context, start.failure, -1);
    return -1;
  }
  if (start.failed != 0 && start.failure.error != 0) {
    SendReport(context, start.failure, -1);
    return -1;
  }
  plan::Report started = {};
  started.kind = plan::ReportKind::kStarted;
  SendReport(context, started, -1);
  return pid;
}

}  // namespace belljar::jail
