// Starts the command: the last steps run in a child that shares init's memory until it execs.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jail/context.h"

namespace belljar::jail {
namespace {

constexpr std::size_t kStackSize = 32 * 1024;

/// For execve; one behind the other in memory of whoever starts the command.
struct Vectors {
  char** argv;
  char** envp;
};

struct Start {
  Context* context;
  Vectors vectors;
  plan::Report failure;  ///< Written by the child, which shares init's memory until it execs.
};

int ResetSignals() {
  // Ignored signals survive exec: the guest must not inherit that its caller ignores SIGPIPE.
  struct sigaction by_default = {};
  by_default.sa_handler = SIG_DFL;
  for (int number = 1; number <= 64; ++number) sigaction(number, &by_default, nullptr);
  sigset_t none;
  sigemptyset(&none);
  return sigprocmask(SIG_SETMASK, &none, nullptr);
}

constexpr int kStreams = STDERR_FILENO + 1;

std::size_t Count(const plan::CommandBlock& command, std::uint32_t list) {
  std::size_t count = 0;
  for (const std::uint32_t* offset = plan::Offsets(command, list); *offset != 0; ++offset) ++count;
  return count;
}

// Makes `fd` a number that is at least `first`.
int Lift(int& fd, int first) {
  if (fd >= first) return 0;
  fd = fcntl(fd, F_DUPFD_CLOEXEC, first);
  return fd < 0 ? -1 : 0;
}

// SECURITY: they come over the control socket, to the command's process alone. Neither the parent nor the launcher nor
// init ever has the guest's ends while a guest runs: by splice() it can hold a pipe's lock for as long as it likes, and
// whoever closes the last descriptor of an end would sleep until it lets go, deaf to SIGKILL.
//
// Channels come with them, and get their numbers last of all: those may be of descriptors that the steps before need.
// Before the command is known so is not how many.
int ReceiveStreams(Context& context, int (&streams)[kStreams]) {
  const bool known = context.command != nullptr;
  const int channels = known ? static_cast<int>(Count(*context.command, context.command->channels)) : 0;
  const int piped = context.terminal < 0 ? kStreams : 0;
  if (known && piped + channels == 0) return 0;
  int received[kStreams + plan::kMaxChannels];
  const int most = known ? piped + channels : kStreams + plan::kMaxChannels;
  const int got = ReceiveDescriptors(context, received, most, 0);
  if (got < 0) return -1;
  if (got < piped || (known && got != most)) {
    errno = ECANCELED;
    return -1;
  }
  if (piped != 0) memcpy(streams, received, sizeof streams);
  context.channel_count = got - piped;
  for (int i = 0; i < context.channel_count; ++i) {
    context.channels[i] = received[piped + i];
    if (Lift(context.channels[i], plan::kLastChannelNumber + 1) != 0) return -1;  // Out of the way of each other.
  }
  return 0;
}

int Stdio(Context& context) {
  int streams[kStreams] = {context.terminal, context.terminal, context.terminal};
  if (ReceiveStreams(context, streams) != 0) return -1;
  for (int fd = 0; fd < kStreams; ++fd) {  // Out of the way of the numbers that they get.
    context.detail = 1 + fd;
    if (Lift(streams[fd], kStreams) != 0) return -1;
  }
  for (int fd = 0; fd < kStreams; ++fd) {
    context.detail = 1 + kStreams + fd;
    if (dup2(streams[fd], fd) != fd) return -1;
  }
  return 0;
}

int NewSession(Context& context) {
  if (setsid() < 0) return -1;
  context.detail = 1;
  return context.terminal < 0 ? 0 : ioctl(context.terminal, TIOCSCTTY, 0);
}

const char* Workdir(const Context& context, const plan::Step& step) {
  const plan::CommandBlock* command = context.command;
  return command != nullptr && command->workdir != 0 ? plan::Text(*command, command->workdir)
                                                     : plan::Text(context.plan, step.text);
}

int TraceMe(Context& context) {
  // SECURITY: without privileges only a dumpable process can be seized. Nothing of the guest's runs yet, and whoever
  // may look in now may look into the caller as well. It ends before exec: init shares this memory.
  if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0) return -1;
  plan::Report ready = {};
  ready.kind = plan::ReportKind::kTraceMe;
  context.detail = 1;
  if (SendReport(context, ready, -1) != 0) return -1;
  context.detail = 2;
  char go = 0;
  ssize_t got = 0;
  while ((got = recv(context.fds[plan::kControlSlot], &go, 1, 0)) < 0 && errno == EINTR) {
  }
  if (got != 1) {  // The parent is gone or has thought better of it.
    errno = ECANCELED;
    return -1;
  }
  context.detail = 3;
  return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

// As execvp does: the first candidate that is there decides, one that may not be executed is remembered.
int Exec(Context& context, char** argv, char** envp) {
  int result = ENOENT;
  for (const std::uint32_t* path = plan::Offsets(*context.command, context.command->exec_paths); *path != 0; ++path) {
    execve(plan::Text(*context.command, *path), argv, envp);
    if (errno == EACCES) result = EACCES;
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) return errno;
  }
  return result;
}

int DoCommandStep(Context& context, const plan::Step& step) {
  context.detail = 0;
  switch (step.op) {
    case plan::Op::kNewSession: return NewSession(context);
    case plan::Op::kStdio: return Stdio(context);
    case plan::Op::kWorkdir: return chdir(Workdir(context, step));
    case plan::Op::kTraceMe: return TraceMe(context);
    default: return DoStep(context, step);
  }
}

int LowerLimits(Context& context) {
  const struct {
    std::uint64_t resource;
    std::uint64_t most;
  } limits[] = {{RLIMIT_FSIZE, context.command->file_size},
                {RLIMIT_NOFILE, context.command->open_files},
                {RLIMIT_CPU, context.command->cpu_seconds}};
  for (const auto& [resource, most] : limits) {
    plan::Step step = {};
    step.op = plan::Op::kCommandRlimit;
    step.value = resource;
    step.more_value = most;
    if (most != plan::kNoLimit && DoStep(context, step) != 0) return -1;
  }
  return 0;
}

// All steps of the command but exec; 0, or -1 with the failure told. Where the command is not known yet it has no
// streams, and takes them under no limit of its own.
int DoCommandSteps(Context& context, plan::Report& failure) {
  for (std::uint32_t i = 0; i < context.plan.step_count; ++i) {
    const plan::Step& step = plan::Steps(context.plan)[i];
    if (step.op < plan::kFirstCommandOp || step.op == plan::Op::kExec) continue;
    const bool later = step.op == plan::Op::kStdio || step.op == plan::Op::kCommandRlimit;
    if (later && context.command == nullptr) continue;
    if (DoCommandStep(context, step) == 0) continue;
    failure.kind = plan::ReportKind::kSetupFailed;
    failure.step = static_cast<int>(i);
    failure.error = errno;
    failure.detail = context.detail;
    return -1;
  }
  if (context.umask >= 0) umask(static_cast<mode_t>(context.umask));
  const bool own_limits = context.steward && context.command != nullptr;
  if (ResetSignals() == 0 && (!own_limits || LowerLimits(context) == 0)) return 0;
  failure.kind = plan::ReportKind::kSetupFailed;
  failure.step = static_cast<int>(context.plan.step_count) - 1;
  failure.error = errno;
  return -1;
}

int OpenChannels(Context& context) {
  const plan::CommandBlock& command = *context.command;
  const std::uint32_t* const numbers = plan::Offsets(command, command.channels);
  for (int i = 0; i < context.channel_count; ++i) {
    if (dup2(context.channels[i], static_cast<int>(numbers[i])) < 0) return -1;
  }
  return 0;
}

// Returns only when it failed.
void ExecCommand(Context& context, const Vectors& vectors, plan::Report& failure) {
  // Told by whoever becomes the guest, not by init once it has: the parent's deadline must not depend on an init that
  // somebody stops in between.
  plan::Report started = {};
  started.kind = plan::ReportKind::kStarted;
  SendReport(context, started, -1);
  failure.kind = plan::ReportKind::kExecFailed;
  failure.step = static_cast<int>(context.plan.step_count) - 1;
  failure.error = OpenChannels(context) == 0 ? Exec(context, vectors.argv, vectors.envp) : errno;
}

std::size_t CountVectors(const plan::CommandBlock& command) {
  return Count(command, command.argv) + 1 + Count(command, command.envp) + 1;
}

// Returns where the next list can begin.
char** Fill(const plan::CommandBlock& command, std::uint32_t list, char** next) {
  for (const std::uint32_t* offset = plan::Offsets(command, list); *offset != 0; ++offset) {
    *next++ = const_cast<char*>(plan::Text(command, *offset));
  }
  *next++ = nullptr;
  return next;
}

Vectors FillVectors(const plan::CommandBlock& command, char** space) {
  char** const envp = Fill(command, command.argv, space);
  Fill(command, command.envp, envp);
  return {.argv = space, .envp = envp};
}

int RunCommand(void* argument) {
  auto& start = *static_cast<Start*>(argument);
  if (DoCommandSteps(*start.context, start.failure) != 0) _exit(125);
  ExecCommand(*start.context, start.vectors, start.failure);
  _exit(127);
}

// The first of that kind, or the last step.
std::uint32_t IndexOf(const Context& context, plan::Op op) {
  std::uint32_t index = 0;
  while (index + 1 < context.plan.step_count && plan::Steps(context.plan)[index].op != op) ++index;
  return index;
}

int PlansLimits(Context& context) {
  for (std::uint32_t i = 0; i < context.plan.step_count; ++i) {
    const plan::Step& step = plan::Steps(context.plan)[i];
    if (step.op == plan::Op::kCommandRlimit && DoStep(context, step) != 0) return -1;
  }
  return 0;
}

// What is the command's own, now that it is known; 0, or -1 with errno and `step` as the one that failed.
int TakeOwn(Context& context, std::int32_t& step) {
  const plan::CommandBlock& command = *context.command;
  step = static_cast<std::int32_t>(IndexOf(context, plan::Op::kWorkdir));
  if (command.workdir != 0 && chdir(plan::Text(command, command.workdir)) != 0) return -1;
  step = static_cast<std::int32_t>(context.plan.step_count) - 1;
  if (context.channel_count != static_cast<int>(Count(command, command.channels))) {
    errno = ECANCELED;
    return -1;
  }
  int& control = context.fds[plan::kControlSlot];
  if (context.channel_count != 0 && Lift(control, plan::kLastChannelNumber + 1) != 0) return -1;
  return PlansLimits(context) == 0 && (!context.steward || LowerLimits(context) == 0) ? 0 : -1;
}

// The command's process, up to its own program, before there is a command: under all filters already when it waits.
[[noreturn]] void WaitAndExec(Context& context, int told) {
  plan::Report report = {};
  if (DoCommandSteps(context, report) == 0) {
    report.kind = plan::ReportKind::kPrepared;
    if (SendReport(context, report, -1) != 0) _exit(0);
    const int error = Stdio(context) == 0 ? 0 : errno;
    if (!ReceiveCommand(context)) _exit(0);  // Never used, or no longer wanted.
    const plan::CommandBlock& command = *context.command;
    auto** space = static_cast<char**>(__builtin_alloca(CountVectors(command) * sizeof(char*)));
    const Vectors vectors = FillVectors(command, space);
    report.kind = plan::ReportKind::kSetupFailed;
    report.step = static_cast<std::int32_t>(IndexOf(context, plan::Op::kStdio));
    report.error = error;
    if (error == 0 && TakeOwn(context, report.step) != 0) report.error = errno;
    if (report.error == 0 && write(told, &command, sizeof command) != sizeof command) report.error = errno;
    if (report.error == 0) ExecCommand(context, vectors, report);
  }
  SendReport(context, report, -1);
  _exit(127);
}

}  // namespace

int ReceiveDescriptors(const Context& context, int* fds, int most, int flags, char* word) {
  char unread = 0;
  struct iovec part = {word != nullptr ? word : &unread, 1};
  alignas(struct cmsghdr) char control[CMSG_SPACE(plan::kMaxSlots * sizeof(int))] = {};
  struct msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  // Not CMSG_SPACE, in whose padding the kernel would put one more.
  message.msg_controllen = CMSG_LEN(static_cast<std::size_t>(most) * sizeof *fds);
  ssize_t got = 0;
  while ((got = recvmsg(context.fds[plan::kControlSlot], &message, MSG_CMSG_CLOEXEC | flags)) < 0 && errno == EINTR) {
  }
  if (got < 0) return -1;
  const struct cmsghdr* head = CMSG_FIRSTHDR(&message);
  if (got == 0 || head == nullptr || head->cmsg_type != SCM_RIGHTS) {
    errno = ECANCELED;  // The parent is gone.
    return -1;
  }
  const auto count = static_cast<int>((head->cmsg_len - CMSG_LEN(0)) / sizeof *fds);
  if (count > most) {
    errno = EPROTO;
    return -1;
  }
  memcpy(fds, CMSG_DATA(head), static_cast<std::size_t>(count) * sizeof *fds);
  return count;
}

bool ReceiveCommand(Context& context) {
  alignas(plan::CommandBlock) static char block[plan::kMostSentCommand];
  ssize_t got = 0;
  while ((got = recv(context.fds[plan::kControlSlot], block, sizeof block, 0)) < 0 && errno == EINTR) {
  }
  if (got < static_cast<ssize_t>(sizeof(plan::CommandBlock))) return false;
  context.command = reinterpret_cast<const plan::CommandBlock*>(block);
  return true;
}

int TakeStreamNumbers() {
  int taken = open("/dev/null", O_RDWR);
  while (taken >= 0 && taken < 2) taken = dup(taken);
  return taken < 0 ? -1 : 0;
}

int StartCommand(Context& context) {
  // On init's stack: there is no heap here, and the child borrows it only until it execs. The plan's compiler bounds
  // it.
  const plan::CommandBlock& command = *context.command;
  auto** space = static_cast<char**>(__builtin_alloca(CountVectors(command) * sizeof(char*)));
  alignas(16) [[gnu::uninitialized]] char stack[kStackSize];
  Start start = {&context, FillVectors(command, space), {}};
  // CLONE_VFORK: init sleeps until the child has exec'd or ended, and then knows which of the two it was.
  const int pid = clone(RunCommand, stack + kStackSize, CLONE_VM | CLONE_VFORK | SIGCHLD, &start);
  if (pid < 0) {
    start.failure.kind = plan::ReportKind::kSetupFailed;
    start.failure.step = static_cast<int>(context.plan.step_count) - 1;
    start.failure.error = errno;
    start.failure.detail = -1;
  }
  if (start.failure.error != 0) {
    SendReport(context, start.failure, -1);
    if (pid > 0) waitpid(pid, nullptr, __WALL);  // A steward leaves nobody to init.
    return -1;
  }
  return pid;
}

int PrepareCommand(Context& context) {
  if (!context.steward && TakeStreamNumbers() != 0) return -1;
  // The child says what its command is before exec; that the pipe ends without it means that there was no exec.
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  const auto pid = static_cast<int>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (pid == 0) {
    close(ends[0]);
    WaitAndExec(context, ends[1]);
  }
  if (pid < 0) return -1;
  close(ends[1]);
  for (;;) {
    struct pollfd events[4] = {{context.fds[plan::kControlSlot], kWishEvents, 0},
                               {context.signals, POLLIN, 0},
                               {ends[0], POLLIN, 0},
                               {context.mounts, kMountEvents, 0}};
    ppoll(events, 4, nullptr, nullptr);
    if (events[3].revents != 0) context.covers_due = 0;
    if (plan::Report report = {}; !CoversHold(context, report)) Finish(context, &report);
    static plan::CommandBlock head;
    if (events[2].revents != 0) {
      if (read(ends[0], &head, sizeof head) != sizeof head) Finish(context, nullptr);
      if (context.steward) context.command = &head;
      break;
    }
    switch (ParentsWish(context, events[0])) {
      case Wish::kNone: break;
      case Wish::kEnd: {
        plan::Report report = {};
        report.kind = plan::ReportKind::kStopped;
        Finish(context, context.steward ? &report : nullptr);
      }
      case Wish::kGone: Finish(context, nullptr);
    }
  }
  close(ends[0]);
  return pid;
}

}  // namespace belljar::jail
