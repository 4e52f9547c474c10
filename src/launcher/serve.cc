#include "launcher/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jail/loopback.h"
#include "jail/run_child.h"
#include "jail/sweep.h"
#include "launcher/protocol.h"

namespace belljar::launcher {
namespace {

constexpr int kMostSandboxes = 65'536;

/// One that lives, or whose engine has not let go of it yet.
struct Entry {
  std::uint32_t serial;
  int handle;  ///< 0: free.
  pid_t init;  ///< 0: not started, or gone.
  char* leftovers;
  std::uint32_t leftovers_size;
};

// Untouched pages cost nothing.
Entry entries[kMostSandboxes];
int entry_count = 0;  // All behind it were never used.
int events = -1;
int signals = -1;
struct rlimit files_before = {};
jail::CallerStrings own_arguments = {};

// Where the launcher itself is: at home, in the engine's network namespace, or in a new one that the next sandbox gets
// by being its copy. To make one takes as long as all other namespaces together.
int home_network = -1;
enum class Network : std::uint8_t { kHome, kNew, kSandboxes } network = Network::kHome;
bool prepare_network = false;  // Somebody has use for them.

enum : std::uint64_t { kRequests = ~0ULL, kOwner = ~0ULL - 1, kSignals = ~0ULL - 2 };

void Watch(int fd, std::uint64_t tag) {
  struct epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = tag;
  if (epoll_ctl(events, EPOLL_CTL_ADD, fd, &event) != 0) _exit(1);
}

void Tell(int handle, const Answer& answer, int fd) {
  struct iovec part = {const_cast<Answer*>(&answer), sizeof answer};
  struct msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    struct cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
  }
  // Two answers at most: there is room. Whoever does not read them has closed the handle, which is seen elsewhere.
  while (sendmsg(handle, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EINTR) {
  }
}

// False when something is still there.
bool TryRemove(const Entry& entry) {
  bool gone = true;
  for (std::size_t at = 0; at < entry.leftovers_size; at += strlen(entry.leftovers + at) + 1) {
    const char* path = entry.leftovers + at;
    if (path[0] != '\0' && rmdir(path) != 0 && errno != ENOENT && errno != ENOTDIR) gone = false;
  }
  return gone;
}

void RemoveSlowly(const Entry& entry) {
  jail::Leftovers leftovers = {};
  int cgroups = 0;
  for (std::size_t at = 0; at < entry.leftovers_size; at += strlen(entry.leftovers + at) + 1) {
    const char* path = entry.leftovers + at;
    char* const to = at == 0 ? leftovers.directory : leftovers.cgroups[cgroups];
    if (at != 0 && ++cgroups >= jail::Leftovers::kMaxCgroups) break;
    if (strlen(path) < sizeof leftovers.directory) memcpy(to, path, strlen(path) + 1);
  }
  jail::RemoveLeftovers(leftovers, jail::Patience::kSome);
}

// Mostly its engine has removed all already. What is left takes time, which others don't have.
void RemoveBehind(Entry& entry) {
  if (entry.leftovers_size != 0 && !TryRemove(entry)) {
    const auto pid = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    if (pid == 0) {
      prctl(PR_SET_NAME, "belljar-janitor", 0, 0, 0);
      syscall(SYS_close_range, 0, ~0U, 0);
      RemoveSlowly(entry);
      _exit(0);
    }
    if (pid < 0) RemoveSlowly(entry);
  }
}

void Forget(Entry& entry) {
  RemoveBehind(entry);
  if (entry.leftovers != nullptr) munmap(entry.leftovers, kMostLeftovers);
  // By name: as long as an init that was just cloned has its copy of it, a mere close would leave it there.
  epoll_ctl(events, EPOLL_CTL_DEL, entry.handle, nullptr);
  close(entry.handle);
  entry = {};
}

Entry* Find(std::uint32_t serial) {
  for (int i = 0; i < entry_count; ++i) {
    if (entries[i].handle != 0 && entries[i].serial == serial) return &entries[i];
  }
  return nullptr;
}

struct Message {
  Request request;
  int fds[kMostDescriptors];
  int fd_count;
};

enum class Heard : std::uint8_t { kRequest, kNothing, kEnd };

Heard Receive(Message& message) {
  struct iovec part = {&message.request, sizeof message.request};
  alignas(struct cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))];
  struct msghdr head = {};
  head.msg_iov = &part;
  head.msg_iovlen = 1;
  head.msg_control = control;
  head.msg_controllen = sizeof control;
  message.fd_count = 0;
  const ssize_t got = recvmsg(kRequestsFd, &head, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got == 0) return Heard::kEnd;
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Heard::kNothing : Heard::kEnd;
  for (struct cmsghdr* one = CMSG_FIRSTHDR(&head); one != nullptr; one = CMSG_NXTHDR(&head, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    message.fd_count = static_cast<int>((one->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(message.fds, CMSG_DATA(one), static_cast<size_t>(message.fd_count) * sizeof(int));
  }
  // A request is whole, or its sender is none of ours.
  return got >= static_cast<ssize_t>(offsetof(Request, leftovers)) ? Heard::kRequest : Heard::kEnd;
}

void Expect(Message& message) {
  if (message.fd_count != 1) return;
  int at = 0;
  while (at < entry_count && entries[at].handle != 0) ++at;
  if (at == kMostSandboxes || message.request.leftovers_size > kMostLeftovers) {
    close(message.fds[0]);  // Its end is the answer.
    return;
  }
  if (at == entry_count) ++entry_count;
  Entry& entry = entries[at];
  entry = {.serial = message.request.serial, .handle = message.fds[0]};
  if (message.request.leftovers_size != 0) {
    void* const page = mmap(nullptr, kMostLeftovers, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
      close(entry.handle);
      entry = {};
      return;
    }
    entry.leftovers = static_cast<char*>(page);
    entry.leftovers_size = message.request.leftovers_size;
    memcpy(entry.leftovers, message.request.leftovers, entry.leftovers_size);
    entry.leftovers[entry.leftovers_size - 1] = '\0';
  }
  Watch(entry.handle, static_cast<std::uint64_t>(at));
}

bool EnterNewNetwork() {
  if (network == Network::kNew) return true;
  if (unshare(CLONE_NEWNET) != 0) return false;
  // SECURITY: not kNew until all of it worked, and never kHome again by mistake: a sandbox there has the host's
  // network.
  network = Network::kSandboxes;
  if (jail::BringLoopbackUp() == 0) network = Network::kNew;
  return network == Network::kNew;
}

bool EnterNetwork(const plan::LaunchPlan& plan) {
  if (plan.network_ahead != 0) return EnterNewNetwork();
  if (network != Network::kHome && setns(home_network, CLONE_NEWNET) != 0) return false;
  network = Network::kHome;
  return true;
}

// What the sandbox was born in is its own.
void LeaveNetwork(const plan::LaunchPlan& plan) {
  if (plan.network_ahead == 0) return;
  if (network == Network::kNew) network = Network::kSandboxes;
  prepare_network = true;
}

pid_t CloneInit(const plan::LaunchPlan& plan, int cgroup, int* pidfd) {
  struct clone_args arguments = {};
  arguments.flags = plan.clone_flags | CLONE_PIDFD;
  arguments.pidfd = reinterpret_cast<std::uintptr_t>(pidfd);
  arguments.exit_signal = SIGCHLD;
  if (cgroup >= 0) {
    arguments.flags |= CLONE_INTO_CGROUP;
    arguments.cgroup = static_cast<std::uint64_t>(cgroup);
  }
  const auto pid = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
  if (pid >= 0 || errno != ENOSYS || cgroup >= 0) return pid;
  // Where a filter hides clone3.
  return static_cast<pid_t>(
      syscall(SYS_clone, plan.clone_flags | CLONE_PIDFD | SIGCHLD, nullptr, pidfd, nullptr, nullptr));
}

[[noreturn]] void BecomeInit(const plan::LaunchPlan& plan, const int* slots) {
  setrlimit(RLIMIT_NOFILE, &files_before);
  jail::RunChild(plan, slots, plan::kMaxSlots, own_arguments);
}

void Start(Message& message) {
  Entry* const entry = Find(message.request.serial);
  if (entry == nullptr || entry->init != 0 || message.fd_count < 1) return;
  const auto given = [&](int index) { return index >= 0 && index < message.fd_count ? message.fds[index] : -1; };
  int slots[plan::kMaxSlots];
  for (int i = 0; i < plan::kMaxSlots; ++i) slots[i] = given(message.request.slots[i]);
  Answer answer = {.kind = AnswerKind::kFailed};
  int pidfd = -1;
  void* const block =
      mmap(nullptr, message.request.plan_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, message.fds[0], 0);
  if (block != MAP_FAILED) {
    const auto& plan = *static_cast<const plan::LaunchPlan*>(block);
    answer.pid = EnterNetwork(plan) ? CloneInit(plan, given(message.request.cgroup), &pidfd) : -1;
    if (answer.pid == 0) BecomeInit(plan, slots);
    answer.error = errno;
    LeaveNetwork(plan);
    munmap(block, message.request.plan_size);  // SECURITY: the next sandbox is a copy of this process.
  } else {
    answer.pid = -1;
    answer.error = errno;
  }
  if (answer.pid > 0) {
    answer.kind = AnswerKind::kStarted;
    answer.error = 0;
    entry->init = answer.pid;
  }
  Tell(entry->handle, answer, pidfd);
  if (pidfd >= 0) close(pidfd);
}

bool TakeRequests() {
  // SECURITY: on the stack of each call, never kept: no sandbox begins with what another one was told.
  for (;;) {
    Message message;
    const Heard heard = Receive(message);
    if (heard != Heard::kRequest) return heard == Heard::kNothing;
    if (message.request.kind == RequestKind::kExpect) {
      Expect(message);
    } else {
      Start(message);
      for (int i = 0; i < message.fd_count; ++i) close(message.fds[i]);
    }
  }
}

[[noreturn]] void End() {
  for (int i = 0; i < entry_count; ++i) {
    if (entries[i].handle != 0 && entries[i].init != 0) kill(entries[i].init, SIGKILL);
  }
  while (waitpid(-1, nullptr, __WALL) > 0 || errno == EINTR) {
  }
  for (int i = 0; i < entry_count; ++i) {
    if (entries[i].handle != 0 && !TryRemove(entries[i])) RemoveSlowly(entries[i]);
  }
  _exit(0);
}

void Reap() {
  struct signalfd_siginfo info;
  while (read(signals, &info, sizeof info) > 0) {
    if (info.ssi_signo == SIGTERM) End();  // The engine's thread that started it ends with the engine.
  }
  Answer answer = {.kind = AnswerKind::kEnded};
  pid_t pid = 0;
  while ((pid = wait4(-1, &answer.status, WNOHANG | __WALL, &answer.usage)) > 0) {
    for (int i = 0; i < entry_count; ++i) {
      if (entries[i].handle == 0 || entries[i].init != pid) continue;
      answer.pid = pid;
      entries[i].init = 0;
      Tell(entries[i].handle, answer, -1);
      break;
    }
  }
}

void LetGo(Entry& entry) {
  if (entry.handle == 0) return;
  // Its engine waits for the end before it lets go. One that did not is gone itself.
  if (entry.init != 0) kill(entry.init, SIGKILL);
  Forget(entry);
}

void Begin() {
  prctl(PR_SET_NAME, "belljar-launch", 0, 0, 0);
  setsid();  // Ctrl-C is for the engine, which ends its sandboxes in order.
  if (chdir("/") != 0) _exit(1);
  // It holds a descriptor for each sandbox; guests get what they would have got.
  getrlimit(RLIMIT_NOFILE, &files_before);
  const struct rlimit most = {files_before.rlim_max, files_before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &most);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  struct sigaction by_default = {};
  by_default.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &by_default, nullptr);
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  sigaddset(&ended, SIGTERM);
  home_network = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  signals = signalfd(-1, &ended, SFD_CLOEXEC | SFD_NONBLOCK);
  events = epoll_create1(EPOLL_CLOEXEC);
  if (signals < 0 || events < 0) _exit(1);
  Watch(kRequestsFd, kRequests);
  Watch(kOwnerFd, kOwner);
  Watch(signals, kSignals);
}

}  // namespace

void Serve(jail::CallerStrings arguments) {
  own_arguments = arguments;
  Begin();
  for (;;) {
    struct epoll_event ready[32];
    int count = epoll_wait(events, ready, 32, 0);
    if (count == 0) {
      // Nobody waits: the time to make the next one.
      if (prepare_network) (void)EnterNewNetwork();
      count = epoll_wait(events, ready, 32, -1);
    }
    for (int i = 0; i < count; ++i) {
      switch (ready[i].data.u64) {
        case kRequests:
          if (!TakeRequests()) End();
          break;
        case kOwner: End();
        case kSignals: Reap(); break;
        default: LetGo(entries[ready[i].data.u64]);
      }
    }
  }
}

}  // namespace belljar::launcher
