// More memory than allowed, in all the places where memory can be had.
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "knock.h"

enum { kMiB = 1 << 20 };

static long beyond(const struct attempt* attempt) {  // in MiB
  const long limit = attempt->stage->memory > 0 ? attempt->stage->memory / kMiB : 64;
  return limit + limit / 2;
}

static enum outcome reached(struct attempt* attempt, long size, const char* where) {
  usleep(100000);  // for whoever only looks now and then
  char text[80];
  snprintf(text, sizeof text, "%ld MiB %s", size, where);
  return worked(attempt, text);
}

static int fill(long size) {
  for (long used = 0; used < size; ++used) {
    char* block = mmap(NULL, kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return -1;
    memset(block, 'x', kMiB);
  }
  return 0;
}

static enum outcome run_d55_memory(struct attempt* attempt) {
  if (fill(beyond(attempt)) != 0) return refused(attempt, "mmap");
  return reached(attempt, beyond(attempt), "used");
}
ATTACK(d55_memory, "D55a", "memory-bomb", "use more memory than allowed", "memory limit", ENDED_BY_GUARD);

static enum outcome run_d55_children(struct attempt* attempt) {
  const long share = beyond(attempt) / 8;
  pid_t children[8];
  for (int i = 0; i < 8; ++i) {
    children[i] = fork();
    if (children[i] == 0) {
      alarm(5);
      _exit(fill(share) == 0 && raise(SIGSTOP) == 0 ? 0 : 1);
    }
  }
  int full = 0;
  for (int i = 0; i < 8; ++i) {
    int status = 0;
    if (waitpid(children[i], &status, WUNTRACED) > 0 && WIFSTOPPED(status)) ++full;
  }
  const enum outcome outcome =
      full == 8 ? reached(attempt, 8 * share, "used by eight processes") : refused(attempt, "a child's memory");
  for (int i = 0; i < 8; ++i) kill(children[i], SIGKILL);
  return outcome;
}
ATTACK(d55_children, "D55b", "memory-of-children", "use it in many processes, each below the limit", "memory limit",
       ENDED_BY_GUARD);

static enum outcome run_d55_shared_map(struct attempt* attempt) {
  const size_t size = (size_t)beyond(attempt) * kMiB;
  char* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return refused(attempt, "mmap");
  memset(memory, 'x', size);
  return reached(attempt, beyond(attempt), "used, shared and without a name");
}
ATTACK(d55_shared_map, "D55c", "shared-memory-map", "use it in a shared mapping, which is a file of tmpfs",
       "memory limit", ENDED_BY_GUARD);

// The pages stay in the file without a name that such a mapping is, and count for no process any more.
static enum outcome keep_dropped(struct attempt* attempt, char* memory) {
  const size_t size = (size_t)beyond(attempt) * kMiB;
  if (memory == MAP_FAILED) return refused(attempt, "mmap");
  for (size_t at = 0; at < size; at += kMiB) {
    memset(memory + at, 'x', kMiB);
    madvise(memory + at, kMiB, MADV_DONTNEED);
  }
  if (memory[0] != 'x') return errno = ENODATA, refused(attempt, "pages that stay");
  return reached(attempt, beyond(attempt), "kept in a shared mapping that it let go of");
}

static enum outcome run_d55_dropped_map(struct attempt* attempt) {
  const size_t size = (size_t)beyond(attempt) * kMiB;
  return keep_dropped(attempt, mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}
ATTACK(d55_dropped_map, "D55d", "dropped-memory-map", "keep it in a shared mapping, its pages let go of",
       "memory limit", ENDED_BY_GUARD);

static enum outcome run_d55_zeros(struct attempt* attempt) {
  const int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
  if (fd < 0) return refused(attempt, "/dev/zero for writing");
  return keep_dropped(attempt, mmap(NULL, (size_t)beyond(attempt) * kMiB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
}
ATTACK(d55_zeros, "D55e", "dropped-zeros", "the same with /dev/zero, which makes such mappings too", "memory limit?",
       ENDED_BY_GUARD);

static enum outcome fill_file(struct attempt* attempt, int fd, long size, const char* where) {
  static char block[kMiB];
  memset(block, 'x', sizeof block);
  if (fd < 0) return refused(attempt, where);
  for (long used = 0; used < size; ++used) {
    if (write(fd, block, sizeof block) != kMiB) return refused(attempt, where);
  }
  return reached(attempt, size, where);
}

static enum outcome run_d56_memfd(struct attempt* attempt) {
  return fill_file(attempt, memfd_create("fill", MFD_CLOEXEC), beyond(attempt), "in a memfd");
}
ATTACK(d56_memfd, "D56a", "memfd", "use it in a memfd, which no process maps", "memory limit", ENDED_BY_GUARD);

// A file without a name: gone with its process.
static enum outcome fill_directory(struct attempt* attempt, const char* directory) {
  const long size = beyond(attempt);
  int fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) {
    char name[64];
    snprintf(name, sizeof name, "%s/belljar-fill-%d", directory, (int)getpid());
    fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) unlink(name);
  }
  return fill_file(attempt, fd, size, directory);
}
static enum outcome run_d56_shm(struct attempt* attempt) { return fill_directory(attempt, "/dev/shm"); }
ATTACK(d56_shm, "D56b", "dev-shm", "use it in /dev/shm", "root filesystem, landlock", ENDED_BY_GUARD);
static enum outcome run_d56_tmp(struct attempt* attempt) { return fill_directory(attempt, "/tmp"); }
ATTACK(d56_tmp, "D56c", "tmp", "use it in /tmp", "root filesystem, landlock", ENDED_BY_GUARD);

// Removed as soon as it is attached, so that it ends with its process outside as well.
static enum outcome run_d56_sysv(struct attempt* attempt) {
  for (long used = 0; used < beyond(attempt); used += 8) {
    const int id = shmget(IPC_PRIVATE, 8 * kMiB, IPC_CREAT | 0600);
    char* block = id < 0 ? (char*)-1 : shmat(id, NULL, 0);
    if (id >= 0) shmctl(id, IPC_RMID, NULL);
    if (block == (char*)-1) return refused(attempt, "SysV shared memory");
    memset(block, 'x', 8 * kMiB);
  }
  return reached(attempt, beyond(attempt), "in SysV segments");
}
ATTACK(d56_sysv, "D56d", "sysv-memory", "use it in SysV shared memory", "memory limit", ENDED_BY_GUARD);

// SysV segments outlive their process; the ipc namespace is what they end with.
static enum outcome run_d56_sysv_left(struct attempt* attempt) {
  const int id = shmget(IPC_PRIVATE, kMiB, IPC_CREAT | 0600);
  if (id < 0) return refused(attempt, "shmget");
  struct shmid_ds status;
  // The namespace's usage tells whose it is: in one of its own there is nothing but this.
  struct shm_info info;
  memset(&info, 0, sizeof info);
  const int highest = shmctl(0, SHM_INFO, (struct shmid_ds*)&info);
  const int shared = attempt->stage->shm_id > 0 && shmctl(attempt->stage->shm_id, IPC_STAT, &status) == 0;
  shmctl(id, IPC_RMID, NULL);
  if (highest < 0 || !shared) return refused(attempt, "segments of its own only");
  return worked(attempt, "a segment among the host's, which outlives the run");
}
ATTACK(d56_sysv_left, "D56e", "sysv-left-behind", "leave a SysV segment behind", "ipc namespace, seccomp", 0);

// Bytes in flight belong to no process. Large pipes first, which a user has only so many of, then pairs of sockets.
static long fill_pipes(long wanted) {
  static char block[65536];
  long held = 0;
  int ends[2];
  while (held < wanted && pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0) {
    const int large = fcntl(ends[1], F_SETPIPE_SZ, kMiB) > 0;
    for (ssize_t wrote = 0; (wrote = write(ends[1], block, sizeof block)) > 0;) held += wrote;
    if (!large) break;
  }
  while (held < wanted && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0) {
    const int most = 1 << 30;
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &most, sizeof most);
    for (ssize_t wrote = 0; (wrote = write(ends[0], block, sizeof block)) > 0;) held += wrote;
  }
  return held;
}

static enum outcome run_d56_pipes(struct attempt* attempt) {
  const long wanted = beyond(attempt) * kMiB;
  const long held = in_processes(attempt->stage, 12, wanted, 100, fill_pipes);
  if (held < wanted) return refused(attempt, "bytes in pipes and sockets");
  return reached(attempt, held / kMiB, "in pipes and sockets");
}
ATTACK(d56_pipes, "D56f", "pipe-buffers", "use it as bytes in pipes that nobody reads", "memory limit?",
       ENDED_BY_GUARD);

// The buffers of TCP are counted by a counter of their own, for all of the host, and can be large.
static long fill_connections(long wanted) {
  static char block[65536];
  struct sockaddr_in address;
  socklen_t length = sizeof address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, (struct sockaddr*)&address, length) != 0 || listen(listener, 64) != 0) return 0;
  getsockname(listener, (struct sockaddr*)&address, &length);
  long held = 0;
  int idle = 0;
  while (held < wanted) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr*)&address, length) != 0) break;
    for (idle = 0; idle < 10;) {
      const ssize_t sent = send(fd, block, sizeof block, MSG_DONTWAIT);
      if (sent > 0) held += sent;
      if (sent <= 0 && ++idle) usleep(300);  // the receiver's window may still grow
    }
  }
  return held;
}

static enum outcome run_d56_connections(struct attempt* attempt) {
  const long wanted = beyond(attempt) * kMiB;
  const long held = in_processes(attempt->stage, 8, wanted, 100, fill_connections);
  if (held < wanted) return refused(attempt, "bytes in connections");
  return reached(attempt, held / kMiB, "in connections to itself");
}
ATTACK(d56_connections, "D56g", "socket-buffers", "use it as bytes in TCP connections to itself", "memory limit?",
       ENDED_BY_GUARD);
