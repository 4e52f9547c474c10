// Makes the kernel hold memory for it by one kind of object, MEGABYTES by a careful estimate, in as many processes as
// it takes. Says "made N" or "refused N errno E", N being the megabytes; with a third argument it stays with what it
// made.
//
//   hoard KIND MEGABYTES [stay [WAY]]    WAY: undumpable, leader-ended, own-files, maker-ended, crowded, stopped
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { kMiB = 1 << 20, kMostProcesses = 200 };

static long long made;  // bytes
static long long wanted;
static int serial;  // of names
static int gets_stopped;
static char block[60000];

static char* new_name(void) {
  static char name[64];
  snprintf(name, sizeof name, "hoard-%d-%d", (int)getpid(), serial++);
  return name;
}

static int take_locks_by(int command) {
  const int per_file = 1000;  // the kernel walks through all locks of a file for each new one
  const int fd = open(new_name(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  for (int i = 0; i < per_file; ++i) {
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 2L * (per_file - i), .l_len = 1};
    if (fcntl(fd, command, &lock) != 0) return -1;
    made += 192;
  }
  return 0;
}
static int take_locks(void) { return take_locks_by(F_SETLK); }
static int take_file_locks(void) { return take_locks_by(F_OFD_SETLK); }

static int take_netlink(void) {
  struct {
    struct nlmsghdr head;
    struct ifinfomsg body;
  } question = {.head = {.nlmsg_len = sizeof question, .nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST},
                .body = {.ifi_index = 1}};
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return -1;
  char byte;
  for (int i = 0; i < 1000 && send(fd, &question, sizeof question, MSG_DONTWAIT) > 0; ++i) {
    if (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0) break;  // full
    made += 2048;
  }
  return 0;
}

static int listener = -1;
static struct sockaddr_in address;
static int listen_anew(void) {
  socklen_t length = sizeof address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, (struct sockaddr*)&address, length) != 0 || listen(listener, 4096) != 0) return -1;
  return getsockname(listener, (struct sockaddr*)&address, &length);
}
static int take_unaccepted(void) {
  if (listener < 0 && listen_anew() != 0) return -1;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  connect(fd, (struct sockaddr*)&address, sizeof address);
  const ssize_t sent = send(fd, block, sizeof block, MSG_DONTWAIT | MSG_NOSIGNAL);
  close(fd);
  if (sent <= 0) return listen_anew();  // that one is full
  made += sent;
  return 0;
}

// Bytes that may not be merged have a packet each, which takes 700 bytes and more.
static int take_tiny(void) {
  if (listener < 0 && listen_anew() != 0) return -1;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;
  if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0) return -1;
  connect(fd, (struct sockaddr*)&address, sizeof address);
  int sent = 0;
  while (sent < 2000 && send(fd, block, 1, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_EOR) == 1) ++sent;
  close(fd);
  if (sent == 0) return listen_anew();
  made += 700LL * sent;
  return 0;
}

// Closed with something left to say, to somebody who does not listen.
static int take_orphans(void) {
  const int least = 1;
  if (listener < 0) {
    if (listen_anew() != 0) return -1;
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
  }
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
  connect(fd, (struct sockaddr*)&address, sizeof address);
  long sent = 0;
  ssize_t part = 0;
  while ((part = send(fd, block, 1024, MSG_DONTWAIT | MSG_NOSIGNAL)) > 0) sent += part;
  close(fd);
  if (sent == 0) {
    listener = -1;
    return 0;
  }
  made += 8192;
  return 0;
}

// What describes one descriptor of an inotify instance is as long as its list of watches, for each descriptor again.
static int take_marks(void) {
  static int watching = -1;
  if (watching < 0 && (watching = inotify_init1(0)) < 0) return -1;
  for (int i = 0; i < 8000 && serial < 8000; ++i) {
    char* const name = new_name();
    if (mkdir(name, 0700) != 0 || inotify_add_watch(watching, name, IN_CREATE) < 0) return -1;
  }
  while (dup(watching) >= 0) {
  }
  made += kMiB;
  if (made >= wanted) return 0;
  const pid_t child = fork();
  if (child > 0) {
    int status = 0;
    waitpid(child, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  return child;
}

// For each file that a thread waits for the kernel keeps a place in the file's queue, and for whoever waits a list.
enum { kWaitedFor = 2000, kBytesPerWait = 64 };
static void* wait_for_many(void* ends) {
  static struct pollfd many[kWaitedFor];
  for (int i = 0; i < kWaitedFor; ++i) many[i] = (struct pollfd){*(int*)ends, POLLIN, 0};
  if (poll(many, kWaitedFor, -1) < 0) exit(errno);
  return NULL;
}
static void* select_many(void* ends) {
  static fd_set many[2];  // One has 1,024 places.
  for (int fd = *(int*)ends; fd < kWaitedFor; ++fd) ((unsigned long*)many)[fd / 64] |= 1UL << fd % 64;
  if (syscall(SYS_select, kWaitedFor, many, NULL, NULL, NULL) < 0) exit(errno);
  return NULL;
}
static int start_waiting(void* (*wait)(void*)) {
  static int ends[2] = {-1, -1};
  pthread_t thread;
  if (ends[0] < 0 && pipe(ends) != 0) return -1;
  if (wait == select_many && serial++ == 0) {
    while (dup(ends[0]) < kWaitedFor) {
    }
  }
  if (pthread_create(&thread, NULL, wait, ends) != 0) return -1;
  made += kWaitedFor * kBytesPerWait;
  return 0;
}
// The kernel tells of a thread that was stopped that it goes on with another call. Some at a time, as it can be looked
// at before.
static int take_polls(void) {
  if (start_waiting(wait_for_many) != 0) return -1;
  if (!gets_stopped || ++serial % 16 != 0) return 0;
  usleep(1000);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    kill(parent, SIGSTOP);
    usleep(1000);
    kill(parent, SIGCONT);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  return 0;
}
static int take_selects(void) { return start_waiting(select_many); }

static int take_corked(void) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || sendto(fd, block, sizeof block, MSG_MORE, (struct sockaddr*)&to, sizeof to) < 0) return -1;
  made += sizeof block;
  return 0;
}

// Headers for all that the socket will send; control messages of a level that nobody knows are kept unread.
static int take_options(void) {
  static union {
    struct cmsghdr head;
    char bytes[65000];
  } options;
  options.head = (struct cmsghdr){.cmsg_len = sizeof options, .cmsg_level = 12345, .cmsg_type = 1};
  const int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (setsockopt(fd, IPPROTO_IPV6, IPV6_2292PKTOPTIONS, &options, sizeof options) != 0) return -1;
  made += sizeof options;
  return 0;
}

// 200 bytes for each, at least.
static int take_groups(void) {
  static unsigned number;
  const int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  for (int i = 0; i < 1000; ++i) {
    struct ipv6_mreq group = {.ipv6mr_interface = 1};
    group.ipv6mr_multiaddr.s6_addr[0] = 0xff;
    group.ipv6mr_multiaddr.s6_addr[1] = 0x02;
    ++number;
    memcpy(&group.ipv6mr_multiaddr.s6_addr[12], &number, sizeof number);
    if (setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &group, sizeof group) != 0) return -1;
    made += 200;
  }
  return 0;
}

static int take_old_groups(void) {
  static unsigned number;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  for (int i = 0; i < 20; ++i) {
    struct ip_mreqn group = {.imr_multiaddr = {htonl(0xe9000000U + ++number)}, .imr_ifindex = 1};
    if (setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group) != 0) return -1;
    made += kMiB / 100;
  }
  return 0;
}

static int take_shared(void) {
  char* memory = mmap(NULL, kMiB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return -1;
  memset(memory, 'x', kMiB);
  made += kMiB;
  return madvise(memory, kMiB, MADV_DONTNEED);
}
static int take_zeros(void) {
  const int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
  if (fd < 0) return -1;
  char* memory = mmap(NULL, kMiB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return -1;
  memset(memory, 'x', kMiB);
  made += kMiB;
  return madvise(memory, kMiB, MADV_DONTNEED);
}

static int take_pair(int type, size_t size) {
  int pair[2];
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) return -1;
  while (write(pair[0], block, size) > 0) made += (long long)size;
  return 0;
}
static int take_pairs(void) { return take_pair(SOCK_STREAM, 4096); }
static int take_datagrams(void) { return take_pair(SOCK_DGRAM, 4096); }
static int take_pipes(void) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return -1;
  while (write(ends[1], block, 4096) > 0) made += 4096;
  return 0;
}
static int take_backlog(void) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  socklen_t length = sizeof name;
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, (struct sockaddr*)&name, sizeof(sa_family_t)) != 0 || listen(fd, 4096) != 0) return -1;
  getsockname(fd, (struct sockaddr*)&name, &length);
  for (int i = 0; i < 100 && made < wanted; ++i) {
    const int near = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (near < 0) return -1;
    connect(near, (struct sockaddr*)&name, length);
    while (write(near, block, 32768) > 0) made += 32768;
    close(near);
  }
  return 0;
}

static int take_epoll(void) {
  static int events[100];
  static pid_t owner;
  for (int i = 0; owner != getpid() && i < 100; ++i) events[i] = eventfd(0, EFD_CLOEXEC);
  owner = getpid();
  const int fd = epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) return -1;
  for (int i = 0; i < 100; ++i) {
    struct epoll_event event = {.events = EPOLLIN};
    if (epoll_ctl(fd, EPOLL_CTL_ADD, events[i], &event) != 0) return -1;
    made += 192;
  }
  return 0;
}
static int take_notices(void) {
  char directory[64];
  const int fd = inotify_init1(IN_CLOEXEC);
  if (fd < 0) return -1;
  strcpy(directory, new_name());
  if (mkdir(directory, 0700) != 0 || inotify_add_watch(fd, directory, IN_CREATE | IN_DELETE) < 0) return -1;
  char name[300];
  for (int i = 0; i < 5000; ++i) {
    snprintf(name, sizeof name, "%s/%0200d", directory, i);
    const int file = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return -1;
    close(file);
    unlink(name);
    made += 512;
  }
  return 0;
}
static int take_messages(void) {
  const int id = msgget(IPC_PRIVATE, 0600);
  if (id < 0) return -1;
  struct {
    long type;
    char text[8000];
  } message = {.type = 1};
  while (msgsnd(id, &message, sizeof message.text, IPC_NOWAIT) == 0) made += sizeof message;
  return 0;
}
static int take_semaphores(void) {
  if (semget(IPC_PRIVATE, 2000, 0600) < 0) return -1;
  made += 2000 * 64;
  return 0;
}
static int take_page_tables(void) {
  const size_t far = 2 * kMiB;  // one table maps that much
  char* memory = mmap(NULL, 256 * far, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return -1;
  madvise(memory, 256 * far, MADV_NOHUGEPAGE);
  for (size_t i = 0; i < 256; ++i) {
    (void)*(volatile char*)(memory + i * far);
    made += 4096;
  }
  return 0;
}
// Access lists: as long as attributes may be, on files that are gone.
static int take_lists(void) {
  static struct {
    unsigned version;
    struct {
      unsigned short tag, rights;
      unsigned id;
    } entries[8000];
  } list = {.version = 2};
  const int count = sizeof list.entries / sizeof list.entries[0];
  for (int i = 0; i < count; ++i) {
    list.entries[i].tag = i == 0 ? 1 : i < count - 3 ? 2 : i == count - 3 ? 4 : i == count - 2 ? 0x10 : 0x20;
    list.entries[i].rights = 7;
    list.entries[i].id = list.entries[i].tag == 2 ? getuid() : ~0U;
  }
  char path[96];
  snprintf(path, sizeof path, "/dev/shm/%s", new_name());
  const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  unlink(path);
  if (fsetxattr(fd, "system.posix_acl_access", &list, sizeof list, 0) != 0) return -1;
  made += sizeof list;
  return 0;
}
static int take_links(void) {
  char target[4000];
  memset(target, 'a', sizeof target);
  target[sizeof target - 1] = '\0';
  if (symlink(target, new_name()) != 0) return -1;
  made += sizeof target;
  return 0;
}

static const struct {
  const char* name;
  int (*take)(void);
} kinds[] = {
    {"locks", take_locks},
    {"file-locks", take_file_locks},
    {"netlink", take_netlink},
    {"unaccepted", take_unaccepted},
    {"corked", take_corked},
    {"shared", take_shared},
    {"tiny", take_tiny},
    {"orphans", take_orphans},
    {"marks", take_marks},
    {"options", take_options},
    {"groups", take_groups},
    {"zeros", take_zeros},
    {"pairs", take_pairs},
    {"datagrams", take_datagrams},
    {"pipes", take_pipes},
    {"backlog", take_backlog},
    {"epoll", take_epoll},
    {"notices", take_notices},
    {"messages", take_messages},
    {"semaphores", take_semaphores},
    {"page-tables", take_page_tables},
    {"lists", take_lists},
    {"polls", take_polls},
    {"selects", take_selects},
    {"links", take_links},
    {"old-groups", take_old_groups},
};

// Without descriptors left it goes on in a child, and keeps what it has until that one is done.
static int take_all(int (*take)(void)) {
  for (int processes = 1;; ++processes) {
    while (made < wanted && take() == 0) {
    }
    if (made >= wanted || errno != EMFILE || processes == kMostProcesses) return made >= wanted ? 0 : -1;
    const pid_t child = fork();
    if (child < 0) return -1;
    if (child > 0) {
      int status = 0;
      waitpid(child, &status, 0);
      _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
    close_range(3, ~0U, 0);
    listener = -1;
  }
}

static int (*take_kind)(void);
static int stays;

static void* hoard(void* unused) {
  const int done = take_all(take_kind);
  const int error = errno;
  if (done == 0) printf("made %lld\n", made / kMiB);
  if (done != 0) printf("refused %lld errno %d\n", made / kMiB, error);
  fflush(stdout);
  if (stays && done == 0) pause();
  exit(0);
  return unused;
}

static int take_only(void* unused) {
  (void)unused;
  return take_all(take_kind);
}

// Ways to be where somebody who looks at the first thread of a process, as its user, sees nothing.
static void* hoard_with_own_files(void* unused) {
  close_range(1000, ~0U, CLOSE_RANGE_UNSHARE);
  return hoard(unused);
}
// Others come and go all the time, each with much to look at.
static void keep_a_crowd(void) {
  enum { kCrowd = 100, kFiles = 480 };
  pid_t crowd[kCrowd];
  for (;;) {
    for (int i = 0; i < kCrowd; ++i) {
      if ((crowd[i] = fork()) == 0) {
        while (dup(0) < kFiles) {
        }
        pause();
      }
    }
    usleep(200 * 1000);
    for (int i = 0; i < kCrowd; ++i) {
      if (crowd[i] > 0) kill(crowd[i], SIGKILL);
    }
    for (int i = 0; i < kCrowd; ++i) {
      if (crowd[i] > 0) waitpid(crowd[i], NULL, 0);
    }
  }
}
static void hoard_by(const char* way) {
  static char stack[1 << 16];
  pthread_t thread;
  if (strcmp(way, "undumpable") == 0) prctl(PR_SET_DUMPABLE, 0);
  if (strcmp(way, "leader-ended") == 0) {
    pthread_create(&thread, NULL, hoard, NULL);
    pthread_exit(NULL);
  }
  if (strcmp(way, "own-files") == 0) {
    pthread_create(&thread, NULL, hoard_with_own_files, NULL);
    pthread_join(thread, NULL);
  }
  if (strcmp(way, "maker-ended") == 0) {
    const pid_t maker = clone(take_only, stack + sizeof stack, CLONE_FILES | CLONE_VM | SIGCHLD, NULL);
    waitpid(maker, NULL, 0);
  }
  if (strcmp(way, "crowded") == 0) {  // Deeper than the crowd: whoever goes through the tree comes to it last.
    if (fork() != 0) keep_a_crowd();
    if (fork() != 0) pause();
  }
  gets_stopped = strcmp(way, "stopped") == 0;
  hoard(NULL);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  wanted = atoll(argv[2]) * kMiB;
  stays = argc > 3;
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
    if (strcmp(argv[1], kinds[i].name) != 0) continue;
    take_kind = kinds[i].take;
    hoard_by(argc > 4 ? argv[4] : "plainly");
  }
  return 2;
}
