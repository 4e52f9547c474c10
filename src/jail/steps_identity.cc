// Who init is: its cgroup, ids, namespaces, terminal and descriptors.
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail/context.h"
#include "jail/loopback.h"

namespace belljar::jail {
namespace {

int HideCaller(Context& context) {
  // SECURITY: init is a copy of the caller and shows the caller's command line and environment in /proc/1 otherwise.
  if (context.caller.begin != nullptr) {
    memset(context.caller.begin, 0, static_cast<size_t>(context.caller.end - context.caller.begin));
  }
  return prctl(PR_SET_NAME, "belljar-init", 0, 0, 0);
}

// What the kernel counts per user comes out of the caller's own share where the guest is the caller's user; and in a
// namespace that may have none below it nobody becomes root of a new one, filter or not. No error where /proc/sys is
// read-only (in a container): the filter stands before it.
void LimitNamespace(int proc) {
  constexpr std::size_t kProc = sizeof "/proc/" - 1;
  const std::size_t skip = proc == AT_FDCWD ? 0 : kProc;
  (void)WriteFile(proc, &"/proc/sys/user/max_user_namespaces"[skip], "0", 1, 0, 0);
  (void)WriteFile(proc, &"/proc/sys/user/max_inotify_instances"[skip], "32", 2, 0, 0);
  (void)WriteFile(proc, &"/proc/sys/user/max_inotify_watches"[skip], "8192", 4, 0, 0);
}

int MapIds(Context& context, int proc, const char* prefix, const plan::Step& step) {
  // Without privileges over the parent namespace a group map needs setgroups switched off first (user_namespaces(7)).
  char path[64];
  const size_t before = strlen(prefix);
  memcpy(path, prefix, before + 1);
  const auto write = [&](const char* name, const char* text) {
    ++context.detail;
    memcpy(path + before, name, strlen(name) + 1);
    return WriteFile(proc, path, text, strlen(text), 0, 0);
  };
  if (write("setgroups", "deny") != 0) return -1;
  if (write("uid_map", plan::Text(context.plan, step.text)) != 0) return -1;
  if (write("gid_map", plan::Text(context.plan, step.more)) != 0) return -1;
  LimitNamespace(proc);
  return 0;
}

int SetIds(Context& context, const plan::Step& step) {
  // SECURITY: groups before gid before uid: each call needs what the next one gives away.
  const auto uid = static_cast<uid_t>(step.value);
  const auto gid = static_cast<gid_t>(step.more_value);
  if (syscall(SYS_setgroups, 0, nullptr) != 0) return -1;
  context.detail = 1;
  if (syscall(SYS_setresgid, gid, gid, gid) != 0) return -1;
  context.detail = 2;
  return static_cast<int>(syscall(SYS_setresuid, uid, uid, uid));
}

int UserNamespace(Context& context, const plan::Step& step) {
  // The change of ids made init undumpable, which gives its /proc files to the host's root; its own maps need them.
  if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0) return -1;
  context.detail = 4;
  if (unshare(CLONE_NEWUSER) != 0) return -1;
  if (MapIds(context, context.proc, "self/", step) != 0) return -1;
  context.detail = 5;
  return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

int JoinNetwork(Context& context) {
  // An end without a word: the janitor is gone, and with it the namespace.
  int error = ESRCH;
  ssize_t got = 0;
  while ((got = read(context.fds[plan::kNetworkReadySlot], &error, sizeof error)) < 0 && errno == EINTR) {
  }
  if (got < 0) return -1;
  if (error != 0) {
    errno = error;
    return -1;
  }
  context.detail = 1;
  return setns(context.fds[plan::kJanitorSlot], CLONE_NEWNET);
}

// By the kernel's word: its number in the parent's view is known to nobody inside.
int TellInside(Context& context) {
  plan::Report report = {};
  report.kind = plan::ReportKind::kInside;
  return SendReport(context, report, -1);
}

int SocketDiag(Context& context) {
  const int diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  // A kernel without it: the parent takes the worst for granted.
  if (diag < 0) return errno == EPROTONOSUPPORT ? 0 : -1;
  plan::Report report = {};
  report.kind = plan::ReportKind::kSocketDiag;
  context.detail = 1;
  const int sent = SendReport(context, report, diag);
  const int saved = errno;
  close(diag);
  errno = saved;
  return sent;
}

// Closes all descriptors from `first` on but those in `keep`, which it sorts.
int CloseAllBut(int* keep, int count, unsigned first) {
  for (int i = 1; i < count; ++i) {  // Insertion sort: a handful.
    for (int j = i; j > 0 && keep[j] < keep[j - 1]; --j) {
      const int swap = keep[j];
      keep[j] = keep[j - 1];
      keep[j - 1] = swap;
    }
  }
  unsigned next = first;
  for (int i = 0; i < count; ++i) {
    if (keep[i] < 0 || static_cast<unsigned>(keep[i]) < next) continue;
    const auto fd = static_cast<unsigned>(keep[i]);
    if (fd > next && syscall(SYS_close_range, next, fd - 1, 0) != 0) return -1;
    next = fd + 1;
  }
  return static_cast<int>(syscall(SYS_close_range, next, ~0U, 0));
}

int CloseForeign(Context& context) {
  int keep[plan::kMaxSlots];
  memcpy(keep, context.fds, sizeof keep);
  // Nothing that is opened on the way shall get the numbers of the streams, which are closed in some callers.
  int taken = 0;
  while (taken <= STDERR_FILENO && (taken = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) {
  }
  if (taken < 0) return -1;
  context.detail = 1;
  return CloseAllBut(keep, plan::kMaxSlots, STDERR_FILENO + 1);
}

int CloseFds(Context& context) {
  int keep[] = {context.fds[plan::kControlSlot], context.landlock, context.terminal, context.terminals, context.mounts};
  if (CloseAllBut(keep, sizeof keep / sizeof *keep, 0) != 0) return -1;
  context.root = -1;
  context.proc = -1;
  return 0;
}

}  // namespace

int OpenTerminal(Context& context) {
  // The terminal is one of the sandbox's own devpts: the guest never holds a descriptor of the caller's terminal.
  constexpr int kFlags = O_RDWR | O_NOCTTY | O_CLOEXEC;
  const int master = context.terminals < 0 ? open("/dev/ptmx", kFlags) : openat(context.terminals, "ptmx", kFlags);
  if (master < 0) return -1;
  int unlock = 0;
  context.detail = 1;
  if (ioctl(master, TIOCSPTLCK, &unlock) != 0) return -1;
  context.detail = 2;
  context.terminal = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (context.terminal < 0) return -1;
  plan::Report report = {};
  report.kind = plan::ReportKind::kTerminal;
  context.detail = 3;
  const int sent = SendReport(context, report, master);
  close(master);
  return sent;
}

int ResizeTerminal(const Context& context, unsigned short rows, unsigned short columns) {
  struct winsize size = {};
  size.ws_row = rows;
  size.ws_col = columns;
  return ioctl(context.terminal, TIOCSWINSZ, &size);
}

int BringLoopbackUp() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  struct ifreq request = {};
  memcpy(request.ifr_name, "lo", 3);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const int result = ioctl(fd, SIOCSIFFLAGS, &request);
  const int saved = errno;
  close(fd);
  errno = saved;
  return result;
}

int DoIdentityStep(Context& context, const plan::Step& step) {
  const char* text = plan::Text(context.plan, step.text);
  switch (step.op) {
    case plan::Op::kHideCaller: return HideCaller(context);
    case plan::Op::kDieWithParent:
      // Init catches the signal and ends everything in order. It is a second line: the control socket is the first.
      return prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
    case plan::Op::kJoinCgroup:
      // "0" is the writer itself: no other way into a v1 hierarchy avoids a system-wide lock and its 10 ms.
      return write(context.fds[step.slot], "0", 1) == 1 ? 0 : -1;
    case plan::Op::kCgroupNamespace: return unshare(CLONE_NEWCGROUP);
    case plan::Op::kOomScore: return WriteFile(AT_FDCWD, "/proc/self/oom_score_adj", text, strlen(text), 0, 0);
    case plan::Op::kMapIds: return MapIds(context, AT_FDCWD, "/proc/self/", step);
    case plan::Op::kInside: return TellInside(context);
    case plan::Op::kNoDump: return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    case plan::Op::kHostname: return sethostname(text, strlen(text));
    case plan::Op::kLoopback: return BringLoopbackUp();
    case plan::Op::kNetworkAhead: return 0;
    case plan::Op::kJoinNetwork: return JoinNetwork(context);
    case plan::Op::kSocketDiag: return SocketDiag(context);
    case plan::Op::kTerminal: return OpenTerminal(context);
    case plan::Op::kSetIds: return SetIds(context, step);
    case plan::Op::kUserNamespace: return UserNamespace(context, step);
    case plan::Op::kSubreaper: return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    case plan::Op::kCloseForeign: return CloseForeign(context);
    case plan::Op::kCloseFds: return CloseFds(context);
    default: errno = EINVAL; return -1;
  }
}

}  // namespace belljar::jail
