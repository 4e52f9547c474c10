// Memory of the kernel, held for a process and charged to nobody: what cgroups of either version do not count.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "knock.h"

enum { kMiB = 1 << 20, kProcesses = 12, kLockBytes = 192, kReplyBytes = 2048, kPolledBytes = 192 };

static enum outcome hold(struct attempt* attempt, long wanted, long (*take)(long), const char* what) {
  const int late = attempt->stage->inside ? SEEN_LATE_MS : 0;
  const long held = in_processes(attempt->stage, kProcesses, wanted, late, take);
  if (held < wanted) return refused(attempt, what);
  char text[80];
  snprintf(text, sizeof text, "%ld MiB as %s", held / kMiB, what);
  return worked(attempt, text);
}

static long beyond(const struct attempt* attempt) {
  const long limit = attempt->stage->memory > 0 ? attempt->stage->memory : 64L * kMiB;
  return limit + limit / 2;
}

// Many files with a few hundred each: the kernel walks through all locks of a file for each new one.
static const char* scratch;
static long take_locks(long wanted) {
  const int per_file = 500;
  long held = 0;
  for (int files = 0; held < wanted; ++files) {
    char name[256];
    snprintf(name, sizeof name, "%s/belljar-locks-%d-%d", scratch, (int)getpid(), files);
    const int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return held;
    unlink(name);
    for (int i = 0; i < per_file; ++i) {
      struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 2L * (per_file - i), .l_len = 1};
      if (fcntl(fd, F_SETLK, &lock) != 0) return held;
      held += kLockBytes;
    }
  }
  return held;
}
static enum outcome run_d56_locks(struct attempt* attempt) {
  scratch = attempt->stage->scratch != NULL ? attempt->stage->scratch : "/tmp";
  return hold(attempt, 36L * kMiB, take_locks, "record locks");  // more would take its time
}
ATTACK(d56_locks, "D56h", "record-locks", "make the kernel hold it as record locks", "memory limit",
       ENDED_BY_GUARD | SEEN_LATE);

// Each question is answered into the asker's own buffer, which it does not read.
static long take_replies(long wanted) {
  struct {
    struct nlmsghdr head;
    struct ifinfomsg body;
  } question = {.head = {.nlmsg_len = sizeof question, .nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST},
                .body = {.ifi_index = 1}};
  long held = 0;
  while (held < wanted) {
    const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0) return held;
    const int most = 1 << 30;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &most, sizeof most);
    for (int i = 0; i < 1000 && send(fd, &question, sizeof question, MSG_DONTWAIT) > 0; ++i) {
      char byte;
      if (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC) <= 0) break;
      held += kReplyBytes;
    }
  }
  return held;
}
static enum outcome run_d56_netlink(struct attempt* attempt) {
  return hold(attempt, beyond(attempt), take_replies, "replies in netlink sockets");
}
ATTACK(d56_netlink, "D56i", "netlink-replies", "make the kernel hold it as replies that nobody reads", "memory limit?",
       ENDED_BY_GUARD | SEEN_LATE);

static int listen_on_loopback(struct sockaddr_in* address) {
  socklen_t length = sizeof *address;
  memset(address, 0, sizeof *address);
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, (struct sockaddr*)address, length) != 0 || listen(fd, 4096) != 0) return -1;
  return getsockname(fd, (struct sockaddr*)address, &length) == 0 ? fd : -1;
}

// The far end of a connection that nobody has accepted belongs to no process, and the near end is closed.
static long take_unaccepted(long wanted) {
  static char block[60000];
  struct sockaddr_in address;
  if (listen_on_loopback(&address) < 0) return 0;
  long held = 0;
  while (held < wanted) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return held;
    connect(fd, (struct sockaddr*)&address, sizeof address);
    const ssize_t sent = send(fd, block, sizeof block, MSG_DONTWAIT | MSG_NOSIGNAL);
    close(fd);
    if (sent > 0) held += sent;
    if (sent <= 0 && listen_on_loopback(&address) < 0) return held;  // that one is full
  }
  return held;
}
static enum outcome run_d56_unaccepted(struct attempt* attempt) {
  return hold(attempt, beyond(attempt), take_unaccepted, "connections that nobody accepts");
}
ATTACK(d56_unaccepted, "D56j", "unaccepted-connections", "make the kernel hold it in connections nobody accepts",
       "memory limit?", ENDED_BY_GUARD | SEEN_LATE);

// An entry is a file and a number that it was open by: it stays when that number is closed, and all of 64 descriptors
// make eight thousand.
enum { kEach = 20, kFirstNumber = 44 };
static long take_polled(long wanted) {
  long held = 0;
  int epolls[kEach];
  for (int i = 0; i < kEach; ++i) {
    if ((epolls[i] = epoll_create1(EPOLL_CLOEXEC)) < 0) return held;
  }
  for (int file = 0; file < kEach; ++file) {
    const int event = eventfd(0, EFD_CLOEXEC);
    for (int number = kFirstNumber; number < kFirstNumber + kEach; ++number) {
      if (event < 0 || dup3(event, number, O_CLOEXEC) < 0) return held;
      for (int i = 0; i < kEach; ++i) {
        struct epoll_event interest = {.events = EPOLLIN};
        if (held >= wanted || epoll_ctl(epolls[i], EPOLL_CTL_ADD, number, &interest) != 0) return held;
        held += kPolledBytes;
      }
    }
  }
  return held;
}
static enum outcome run_d56_polled(struct attempt* attempt) {
  return hold(attempt, 16L * kMiB, take_polled, "entries of epoll");  // more than 65,536
}
ATTACK(d56_polled, "D56k", "epoll-entries", "take the entries of epoll that its user may have", "memory limit",
       ENDED_BY_GUARD | SEEN_LATE);

// A byte that may not be merged with its neighbours has a packet of its own, 700 bytes and more: little to see for
// whoever counts payload.
static long take_tiny(long wanted) {
  struct sockaddr_in address;
  if (listen_on_loopback(&address) < 0) return 0;
  long held = 0;
  while (held < wanted) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int yes = 1;
    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0) return held;
    connect(fd, (struct sockaddr*)&address, sizeof address);
    int sent = 0;
    while (sent < 2000 && send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_EOR) == 1) ++sent;
    close(fd);
    held += 700L * sent;
    if (sent == 0 && listen_on_loopback(&address) < 0) return held;
  }
  return held;
}
static enum outcome run_d56_tiny(struct attempt* attempt) {
  return hold(attempt, beyond(attempt), take_tiny, "packets of one byte");
}
ATTACK(d56_tiny, "D56l", "tiny-packets", "make the kernel hold it in packets of one byte", "memory limit?",
       ENDED_BY_GUARD | SEEN_LATE);

// Headers for all that a socket will send; those of a level that nobody knows are kept unread.
static long take_options(long wanted) {
  static union {
    struct cmsghdr head;
    char bytes[65000];
  } options;
  options.head = (struct cmsghdr){.cmsg_len = sizeof options, .cmsg_level = 12345, .cmsg_type = 1};
  long held = 0;
  while (held < wanted) {
    const int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_2292PKTOPTIONS, &options, sizeof options) != 0) return held;
    held += sizeof options;
  }
  return held;
}
static enum outcome run_d56_options(struct attempt* attempt) {
  return hold(attempt, 8L * kMiB, take_options, "options of sockets");
}
ATTACK(d56_options, "D56m", "socket-options", "make the kernel hold it as options of sockets", "seccomp", 0);

// A file may have one, of up to 64 KiB; the same user may stand in it as often as its owner likes.
enum { kUsers = 8000 };
static long take_lists(long wanted) {
  static struct {
    struct posix_acl_xattr_header head;
    struct posix_acl_xattr_entry entries[kUsers + 4];
  } list;
  struct posix_acl_xattr_entry* next = list.entries;
  const unsigned nobody = (unsigned)ACL_UNDEFINED_ID;
  list.head.a_version = POSIX_ACL_XATTR_VERSION;
  *next++ = (struct posix_acl_xattr_entry){ACL_USER_OBJ, ACL_READ | ACL_WRITE, nobody};
  for (int i = 0; i < kUsers; ++i) *next++ = (struct posix_acl_xattr_entry){ACL_USER, ACL_READ, getuid()};
  *next++ = (struct posix_acl_xattr_entry){ACL_GROUP_OBJ, ACL_READ, nobody};
  *next++ = (struct posix_acl_xattr_entry){ACL_MASK, ACL_READ, nobody};
  *next++ = (struct posix_acl_xattr_entry){ACL_OTHER, 0, nobody};
  long held = 0;
  for (int files = 0; held < wanted; ++files) {
    char name[256];
    snprintf(name, sizeof name, "%s/belljar-lists-%d-%d", scratch, (int)getpid(), files);
    const int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return held;
    unlink(name);
    if (fsetxattr(fd, "system.posix_acl_access", &list, sizeof list, 0) != 0) return held;
    held += sizeof list;
  }
  return held;
}
static enum outcome run_d56_lists(struct attempt* attempt) {
  // Outside on a tmpfs too: filesystems of disks have no room for such lists.
  scratch = attempt->stage->inside ? attempt->stage->scratch : "/dev/shm";
  return hold(attempt, 16L * kMiB, take_lists, "access lists");
}
ATTACK(d56_lists, "D56n", "access-lists", "make the kernel hold it as access lists of files", "seccomp", 0);

// Whoever closes such a socket waits for its data to go, which may be the thread of the kernel's that closes files in
// flight for all programs. What is tried is only whether it would.
static enum outcome run_d56_linger(struct attempt* attempt) {
  const struct linger asked = {.l_onoff = 1, .l_linger = 60};
  struct linger got = {0};
  socklen_t size = sizeof got;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return refused(attempt, "socket");
  if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &asked, sizeof asked) != 0) return refused(attempt, "SO_LINGER");
  if (getsockopt(fd, SOL_SOCKET, SO_LINGER, &got, &size) != 0) return refused(attempt, "reading SO_LINGER");
  if (got.l_onoff == 0) return errno = EOPNOTSUPP, refused(attempt, "SO_LINGER, pretended");
  return worked(attempt, "a socket makes whoever closes it wait for 60 s");
}
ATTACK(d56_linger, "D56o", "lingering-sockets", "make a socket's last close wait", "seccomp", 0);
