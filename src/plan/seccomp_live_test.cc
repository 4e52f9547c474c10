// The filters in the kernel: children load them and make real calls.
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/seccomp.h>
#include <pty.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "plan/seccomp_filter.h"

namespace belljar::plan {
namespace {

using Filter = std::span<const sock_filter>;
constexpr int kCouldNotLoad = 250;

/// Returns the result of seccomp(2): 0 or a listener.
int LoadFilter(Filter filter, unsigned flags = 0) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  const sock_fprog program{static_cast<unsigned short>(filter.size()), const_cast<sock_filter*>(filter.data())};
  return static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
}

/// Runs `body` in a child; its result is the exit code. Returns the wait status.
int InChild(const std::vector<Filter>& filters, const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    for (const Filter filter : filters) {
      if (LoadFilter(filter) != 0) _exit(kCouldNotLoad);
    }
    _exit(body());
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == kCouldNotLoad) << "the kernel refused the filter";
  return status;
}

/// As InChild, for bodies that return 0 or an errno; signals come back negative.
int ErrnoInChild(const std::vector<Filter>& filters, const std::function<int()>& body) {
  const int status = InChild(filters, body);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int ErrnoOf(long result) { return result < 0 ? errno : 0; }

Filter Plain() { return KernelFilter(FilterVariant::kErrno); }

TEST(SeccompLive, EveryFilterLoads) {
  for (unsigned bits = 0; bits < 8; ++bits) {
    const Narrowing narrowing{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
    EXPECT_EQ(ErrnoInChild({KernelFilter(FilterVariant::kErrno, narrowing)}, [] { return 0; }), 0) << bits;
    EXPECT_EQ(ErrnoInChild({KernelFilter(FilterVariant::kNotify, narrowing)}, [] { return 0; }), 0) << bits;
    if (bits == 0) continue;
    EXPECT_EQ(ErrnoInChild({NarrowingFilter(narrowing)}, [] { return 0; }), 0) << bits;
  }
}

TEST(SeccompLive, DeniedCallsGetTheirErrno) {
  const long denied[] = {SYS_bpf,           SYS_perf_event_open,  SYS_userfaultfd,
                         SYS_keyctl,        SYS_ptrace,           SYS_mount,
                         SYS_umount2,       SYS_chroot,           SYS_unshare,
                         SYS_setns,         SYS_syslog,           SYS_kcmp,
                         SYS_fsopen,        SYS_process_vm_readv, SYS_mlockall,
                         SYS_pidfd_getfd,   SYS_io_uring_setup,   SYS_fanotify_init,
                         SYS_memfd_secret,  SYS_seccomp,          SYS_vmsplice,
                         SYS_clock_settime, SYS_setfsuid,         SYS_name_to_handle_at,
                         SYS_io_setup};
  for (const long number : denied) {
    const DeniedCall expected = DescribeDenied(static_cast<int>(number));
    EXPECT_EQ(ErrnoInChild({Plain()}, [=] { return ErrnoOf(syscall(number, 0, 0, 0, 0, 0, 0)); }),
              expected.answer_errno)
        << expected.name;
  }
}

TEST(SeccompLive, UnknownNumbersAndClone3AreNotThere) {
  // Not 335 and 336: uretprobe and uprobe of x86_64, which newer kernels let past every filter and end with SIGILL
  // unless they come from a probe that the host itself has set.
  for (const long number : {435L, 337L, 423L, 470L, 599L, 100000L, -1L}) {
    EXPECT_EQ(ErrnoInChild({Plain()}, [=] { return ErrnoOf(syscall(number, 0, 0, 0, 0, 0, 0)); }), ENOSYS) << number;
  }
}

TEST(SeccompLive, NamespacesByCloneAreRefused) {
  for (const long flag : {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS,
                          CLONE_NEWCGROUP, CLONE_PARENT}) {
    EXPECT_EQ(ErrnoInChild({Plain()},
                           [=] {
                             const long pid = syscall(SYS_clone, flag | SIGCHLD, nullptr, nullptr, nullptr, 0);
                             if (pid == 0) _exit(0);
                             return ErrnoOf(pid);
                           }),
              EPERM)
        << flag;
  }
}

// Whoever counts a guest's record locks looks at the open files of its processes (launch/uncounted.h).
TEST(SeccompLive, OpenFilesAreThoseOfAProcess) {
  const auto ask = [](auto... arguments) {
    return ErrnoInChild({Plain()}, [=] { return ErrnoOf(syscall(arguments...)); });
  };
  // The kernel's answer to the first, without the flags that it needs besides, would be EINVAL.
  EXPECT_EQ(ask(SYS_clone, CLONE_THREAD, nullptr, nullptr, nullptr, 0), EPERM);
  EXPECT_EQ(ask(SYS_clone, CLONE_THREAD | CLONE_FILES, nullptr, nullptr, nullptr, 0), EINVAL);
  EXPECT_EQ(ask(SYS_close_range, 1000, ~0U, CLOSE_RANGE_UNSHARE), EINVAL);
  EXPECT_EQ(ask(SYS_close_range, 1000, ~0U, 0), 0);
  EXPECT_EQ(ask(SYS_fcntl, -1, F_OFD_SETLK, nullptr), EINVAL);
  EXPECT_EQ(ask(SYS_fcntl, -1, F_SETLK, nullptr), EBADF);
}

// What the kernel keeps for it is charged to nobody.
TEST(SeccompLive, AttributesAreShort) {
  const auto set = [](std::size_t size) {
    return ErrnoInChild({Plain()}, [=] {
      const std::string value(size, 'x');
      return ErrnoOf(setxattr("/no/such/file", "user.note", value.data(), size, 0));
    });
  };
  EXPECT_EQ(set(127), ENOENT);
  for (const std::size_t size : {128U, 129U, 1000U, 65536U}) EXPECT_EQ(set(size), EOPNOTSUPP) << size;
}

// It would make whoever closes the socket wait: the kernel itself, when nobody else has it any more.
TEST(SeccompLive, SocketsDoNotLinger) {
  const auto lingers = [](const std::vector<Filter>& filters) {
    return ErrnoInChild(filters, [] {
      const int fd = socket(AF_INET, SOCK_STREAM, 0);
      linger asked{.l_onoff = 1, .l_linger = 60};
      if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &asked, sizeof asked) != 0) return errno;
      linger got{};
      socklen_t size = sizeof got;
      if (getsockopt(fd, SOL_SOCKET, SO_LINGER, &got, &size) != 0) return errno;
      return got.l_onoff != 0 ? EBUSY : 0;
    });
  };
  EXPECT_EQ(lingers({}), EBUSY);
  EXPECT_EQ(lingers({Plain()}), 0);
}

TEST(SeccompLive, SharedMemoryWithoutANameIsRefusedWhereMemoryIsWatched) {
  const auto map = [](const Narrowing& narrowing, int flags) {
    return ErrnoInChild({KernelFilter(FilterVariant::kErrno, narrowing)}, [=] {
      return mmap(nullptr, 4096, PROT_READ, flags | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? errno : 0;
    });
  };
  EXPECT_EQ(map({.no_uncounted = true}, MAP_SHARED), EPERM);
  EXPECT_EQ(map({.no_uncounted = true}, MAP_SHARED | MAP_NORESERVE | MAP_POPULATE), EPERM);
  EXPECT_EQ(map({.no_uncounted = true}, MAP_PRIVATE), 0);
  EXPECT_EQ(map({}, MAP_SHARED), 0);
}

TEST(SeccompLive, TerminalRequestsAreRefusedWithAnyHighBits) {
  int master = -1;
  int terminal = -1;
  ASSERT_EQ(openpty(&master, &terminal, nullptr, nullptr, nullptr), 0);
  for (const unsigned long high : {0UL, 1UL << 32, 1UL << 63}) {
    EXPECT_EQ(ErrnoInChild({Plain()}, [=] { return ErrnoOf(syscall(SYS_ioctl, terminal, TIOCSTI | high, "x")); }),
              EPERM);
    winsize size{};
    EXPECT_EQ(ErrnoInChild({Plain()}, [&] { return ErrnoOf(syscall(SYS_ioctl, terminal, TIOCGWINSZ | high, &size)); }),
              0);
  }
  close(master);
  close(terminal);
}

TEST(SeccompLive, SocketsByFamilyTypeAndProtocol) {
  const auto ask = [](int family, int type, int protocol) {
    return ErrnoInChild({Plain()}, [=] { return ErrnoOf(socket(family, type, protocol)); });
  };
  EXPECT_EQ(ask(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), 0);
  EXPECT_EQ(ask(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), 0);
  EXPECT_EQ(ask(AF_INET, SOCK_DGRAM, 17), 0);
  EXPECT_EQ(ask(AF_NETLINK, SOCK_RAW, 0), 0);
  EXPECT_EQ(ask(AF_INET, SOCK_STREAM, 262), EPROTONOSUPPORT);
  EXPECT_EQ(ask(AF_INET, SOCK_RAW, 1), EPERM);
  EXPECT_EQ(ask(AF_PACKET, SOCK_RAW, 0), EPERM);
  EXPECT_EQ(ask(AF_VSOCK, SOCK_STREAM, 0), EPERM);
  EXPECT_EQ(ask(AF_NETLINK, SOCK_RAW, 12), EPERM) << "netfilter";
}

TEST(SeccompLive, OptionsByValue) {
  const auto ask = [](auto... arguments) {
    return ErrnoInChild({Plain()}, [=] { return ErrnoOf(syscall(arguments...)); });
  };
  EXPECT_EQ(ask(SYS_prctl, PR_SET_NAME, "guest", 0, 0, 0), 0);
  EXPECT_EQ(ask(SYS_prctl, PR_SET_MM, 1, 0, 0, 0), EINVAL);
  EXPECT_EQ(ask(SYS_prctl, PR_SET_SECCOMP, 1, 0, 0, 0), EINVAL);
  EXPECT_EQ(ask(SYS_personality, 0xffffffffUL), 0);
  EXPECT_EQ(ask(SYS_personality, 0x0040000UL), EPERM) << "ADDR_NO_RANDOMIZE";
  sched_param param{};
  EXPECT_EQ(ask(SYS_sched_setscheduler, 0, SCHED_BATCH, &param), 0);
  param.sched_priority = 1;
  EXPECT_EQ(ask(SYS_sched_setscheduler, 0, SCHED_FIFO, &param), EPERM);
  EXPECT_EQ(ask(SYS_sched_setscheduler, 0, SCHED_RR | 0x40000000, &param), EPERM);
  EXPECT_EQ(ask(SYS_mknodat, AT_FDCWD, "/nonexistent/x", S_IFIFO | 0600, 0), ENOENT);
  EXPECT_EQ(ask(SYS_mknodat, AT_FDCWD, "/nonexistent/x", S_IFCHR | 0600, 0), EPERM);
  EXPECT_EQ(ask(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0), ENOMEM);
}

TEST(SeccompLive, OrdinaryWorkGoesOn) {
  EXPECT_EQ(ErrnoInChild({Plain()},
                         [] {
                           int done = 0;
                           std::thread([&] { done = 1; }).join();  // clone3 gets ENOSYS, libc must fall back
                           return done == 1 ? 0 : 1;
                         }),
            0);
  EXPECT_EQ(ErrnoInChild({Plain()},
                         [] {
                           int pair[2];
                           if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 || epoll_create1(0) < 0) return errno;
                           if (memfd_create("x", 0) < 0 || open("/etc/passwd", O_RDONLY) < 0) return errno;
                           rlimit limit{};
                           return ErrnoOf(getrlimit(RLIMIT_NOFILE, &limit));
                         }),
            0);
  EXPECT_EQ(ErrnoInChild({Plain()}, [] { return std::system("true && echo x | cat >/dev/null"); }), 0);
}

TEST(SeccompLive, OtherCallingConventionsEndTheProcess) {
#if defined(__x86_64__)
  const auto old_getpid = [] {
    long result = 20;  // getpid of i386
    asm volatile("int $0x80" : "+a"(result)::"memory");
    return result > 0 ? 0 : 1;
  };
  EXPECT_EQ(ErrnoInChild({Plain()}, [] { return ErrnoOf(syscall(0x40000000L | SYS_getpid)); }), -SIGSYS) << "x32";
  if (ErrnoInChild({}, old_getpid) != 0) GTEST_SKIP() << "vacuous: this kernel has no 32-bit calls";
  EXPECT_EQ(ErrnoInChild({Plain()}, old_getpid), -SIGSYS);
#else
  GTEST_SKIP() << "vacuous: this architecture has one calling convention";
#endif
}

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

/// Connects one end of a pair to a unix socket with a name, as if to one of the host's.
int ReachByPair(int type, const std::string& path) {
  int pair[2];
  if (socketpair(AF_UNIX, type, 0, pair) != 0) return errno;
  const sockaddr_un address = AddressOf(path);
  return ErrnoOf(connect(pair[0], reinterpret_cast<const sockaddr*>(&address), sizeof address));
}

TEST(SeccompLive, NoHostReachLeavesNoWayToNamedSockets) {
  char directory[] = "/tmp/belljar-seccomp-XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  const std::vector<Filter> filters = {KernelFilter(FilterVariant::kErrno, {.no_host_reach = true})};
  for (const auto& [type, expected] :
       {std::pair(SOCK_DGRAM, EPERM), {SOCK_STREAM, EISCONN}, {SOCK_SEQPACKET, EISCONN}}) {
    const std::string path = std::string(directory) + "/socket";
    const int listener = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    ASSERT_GE(listener, 0);
    const sockaddr_un address = AddressOf(path);
    ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    if (type == SOCK_DGRAM) {
      ASSERT_EQ(ErrnoInChild({}, [&] { return ReachByPair(SOCK_DGRAM, path); }), 0) << "the attack itself must work";
    } else {
      ASSERT_EQ(listen(listener, 1), 0);
    }
    EXPECT_EQ(ErrnoInChild(filters, [&, kind = type] { return ReachByPair(kind, path); }), expected) << type;
    EXPECT_EQ(ErrnoInChild(filters, [kind = type] { return ErrnoOf(socket(AF_UNIX, kind, 0)); }), EPERM) << type;
    close(listener);
    unlink(path.c_str());
  }
  EXPECT_EQ(ErrnoInChild(filters, [] { return ErrnoOf(socket(AF_INET, SOCK_DGRAM, 0)); }), EPERM);
  rmdir(directory);
}

// The kernel list denies seccomp(2), so a narrowing is loaded first; the order makes no difference to the answers.
TEST(SeccompLive, StackedNarrowingAnswersByItself) {
  const Narrowing narrowing{.no_uncounted = true, .no_others = true, .no_host_reach = true};
  const std::vector<Filter> stack = {NarrowingFilter(narrowing), KernelFilter(FilterVariant::kNotify)};
  const auto ask = [&](auto... arguments) {
    return ErrnoInChild(stack, [=] { return ErrnoOf(syscall(arguments...)); });
  };
  EXPECT_EQ(ask(SYS_socket, AF_INET, SOCK_STREAM, 0), EPERM);
  EXPECT_EQ(ask(SYS_socket, AF_VSOCK, SOCK_STREAM, 0), EPERM) << "ERRNO wins over USER_NOTIF";
  EXPECT_EQ(ask(SYS_memfd_create, "x", 0), ENOSYS);
  EXPECT_EQ(ask(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, nullptr), 0);
  EXPECT_EQ(ask(SYS_prlimit64, getpid(), RLIMIT_NOFILE, nullptr, nullptr), EPERM);
  EXPECT_EQ(ask(SYS_setpriority, PRIO_PROCESS, 0, 5), 0);
  EXPECT_EQ(ask(SYS_setpriority, PRIO_PROCESS, getpid(), 5), EPERM);
  EXPECT_EQ(ask(SYS_setpriority, PRIO_USER, 0, 5), EPERM);
  EXPECT_EQ(ask(SYS_kill, -1, 0), EPERM);
  EXPECT_EQ(ask(SYS_kill, getpid(), 0), 0);
  EXPECT_EQ(ask(SYS_fchmodat, AT_FDCWD, "/nonexistent", 0600), EPERM);
  EXPECT_EQ(ask(SYS_utimensat, AT_FDCWD, "/nonexistent", nullptr, 0), EPERM);
  EXPECT_EQ(ask(SYS_utimensat, -1, nullptr, nullptr, 0), EPERM) << "open for reading is enough to change times";
  EXPECT_EQ(ask(SYS_shmat, 0, nullptr, 0), EPERM);
}

// A pair of unix sockets is enough to ask for the host's interfaces and to take a name from its programs.
TEST(SeccompLive, NoHostReachLeavesNothingOfTheNetwork) {
  const auto by_pair = [](auto use) {
    int pair[2];
    return socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 ? errno : ErrnoOf(use(pair[0]));
  };
  const auto ask = [&](unsigned long request) {
    return [=] { return by_pair([=](int fd) { return ioctl(fd, request, nullptr); }); };
  };
  const auto take = [&] {
    sockaddr_un name{.sun_family = AF_UNIX, .sun_path = "\0belljar-test"};
    return by_pair([&](int fd) { return bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name); });
  };
  const std::vector<Filter> bare = {KernelFilter(FilterVariant::kErrno, {.no_host_reach = true})};
  EXPECT_EQ(ErrnoInChild({Plain()}, ask(SIOCGIFCONF)), EFAULT) << "the control";
  EXPECT_EQ(ErrnoInChild(bare, ask(SIOCGIFCONF)), ENOTTY);
  EXPECT_EQ(ErrnoInChild({Plain()}, take), 0) << "the control";
  EXPECT_EQ(ErrnoInChild(bare, take), EPERM);
  for (const unsigned long bridge : {0x8940UL, 0x8941UL, 0x8982UL, 0x8983UL, 0x89a0UL, 0x89a1UL})
    EXPECT_EQ(ErrnoInChild({Plain()}, ask(bridge)), ENOTTY) << bridge;
}

// One such socket, and all UDP of the host takes another path through the kernel.
TEST(SeccompLive, NoIpsecInUdp) {
  const auto encapsulate = [] {
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    const int kind = 2;                                           // UDP_ENCAP_ESPINUDP
    return ErrnoOf(setsockopt(fd, 17, 100, &kind, sizeof kind));  // UDP_ENCAP
  };
  if (ErrnoInChild({}, encapsulate) != 0) GTEST_SKIP() << "vacuous: this kernel has no IPsec";
  EXPECT_EQ(ErrnoInChild({Plain()}, encapsulate), ENOPROTOOPT);
}

// A file of the host's that may only be read: its pages in memory are neither to be told nor to be dropped.
TEST(SeccompLive, PagesOfTheHostsFiles) {
  const auto read_now = [] {
    const int fd = open("/proc/self/exe", O_RDONLY);
    char byte = 0;
    iovec part{&byte, 1};
    constexpr int kNow = 8;  // RWF_NOWAIT
    const ssize_t got = preadv2(fd, &part, 1, 0, kNow);
    return got < 0 && errno != EAGAIN ? errno : 0;
  };
  EXPECT_EQ(ErrnoInChild({}, read_now), 0) << "the control";
  EXPECT_EQ(ErrnoInChild({Plain()}, read_now), EOPNOTSUPP);
  const auto drop = [](int fd) {
    return [=] { return ErrnoOf(syscall(SYS_fadvise64, fd, 0, 0, POSIX_FADV_DONTNEED)); };
  };
  EXPECT_EQ(ErrnoInChild({}, drop(-1)), EBADF) << "the control";
  EXPECT_EQ(ErrnoInChild({Plain()}, drop(-1)), 0) << "never asked";
}

int SendFd(int channel, int fd) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return sendmsg(channel, &message, 0) == 1 ? 0 : errno;
}

int ReceiveFd(int channel) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(channel, &message, 0) != 1 || CMSG_FIRSTHDR(&message) == nullptr) return -1;
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return fd;
}

TEST(SeccompLive, ListenerLearnsOfReportedDenialsOnly) {
  int channel[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel), 0);
  const pid_t child = fork();
  if (child == 0) {
    const int listener = LoadFilter(KernelFilter(FilterVariant::kNotify), SECCOMP_FILTER_FLAG_NEW_LISTENER);
    if (listener < 0 || SendFd(channel[1], listener) != 0) _exit(kCouldNotLoad);
    if (ErrnoOf(syscall(SYS_clone3, nullptr, 0)) != ENOSYS) _exit(1);  // quiet: must not reach the listener
    _exit(ErrnoOf(syscall(SYS_mount, nullptr, nullptr, nullptr, 0, nullptr)));
  }
  close(channel[1]);
  const int listener = ReceiveFd(channel[0]);
  ASSERT_GE(listener, 0);
  seccomp_notif request{};
  ASSERT_EQ(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request), 0);
  EXPECT_EQ(request.data.nr, SYS_mount);
  seccomp_notif_resp response{};
  response.id = request.id;
  response.error = -DescribeDenied(request.data.nr).answer_errno;
  ASSERT_EQ(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response), 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), EPERM);
  close(listener);
  close(channel[0]);
}

}  // namespace
}  // namespace belljar::plan
