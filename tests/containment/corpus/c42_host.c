// The host's processes, sockets and IPC objects, by number and by name.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "knock.h"

static enum outcome run_c42_kill(struct attempt* attempt) {
  return kill(attempt->stage->pid, SIGUSR1) != 0 ? refused(attempt, "kill")
                                                 : worked(attempt, "a host process signalled");
}
ATTACK(c42_kill, "C42a", "signal", "signal a process of the host", "pid namespace, landlock", 0);

static enum outcome run_c42_pidfd(struct attempt* attempt) {
  const int fd = (int)syscall(SYS_pidfd_open, attempt->stage->pid, 0);
  if (fd < 0) return refused(attempt, "pidfd_open");
  if (syscall(SYS_pidfd_send_signal, fd, SIGUSR1, NULL, 0) != 0) return refused(attempt, "pidfd_send_signal");
  return worked(attempt, "a host process signalled");
}
ATTACK(c42_pidfd, "C42b", "signal-pidfd", "signal a process of the host by pidfd", "pid namespace, landlock", 0);

static enum outcome run_c42_thread(struct attempt* attempt) {
  const int pid = attempt->stage->pid;
  if (syscall(SYS_tgkill, pid, pid, SIGUSR1) != 0) return refused(attempt, "tgkill");
  return worked(attempt, "a thread of the host signalled");
}
ATTACK(c42_thread, "C42c", "signal-thread", "signal one thread of the host", "pid namespace, landlock", 0);

static enum outcome run_c42_parent(struct attempt* attempt) {
  // Its own init: a dead init would be no keeper of deadlines. Signal 0 asks for the permission alone.
  return kill(getppid(), 0) != 0 ? refused(attempt, "kill") : worked(attempt, "may signal its parent");
}
ATTACK(c42_parent, "C42d", "signal-init", "signal the sandbox's init", "landlock", 0);

static enum outcome run_c42_priority(struct attempt* attempt) {
  if (setpriority(PRIO_PROCESS, (id_t)attempt->stage->pid, 5) != 0) return refused(attempt, "setpriority");
  return worked(attempt, "a host process slowed down");
}
ATTACK(c42_priority, "C42e", "slow-down", "slow a process of the host down", "pid namespace, identity?, seccomp", 0);

static enum outcome run_c42_affinity(struct attempt* attempt) {
  cpu_set_t set;
  if (sched_getaffinity(attempt->stage->pid, sizeof set, &set) != 0) return refused(attempt, "sched_getaffinity");
  if (sched_setaffinity(attempt->stage->pid, sizeof set, &set) != 0) return refused(attempt, "sched_setaffinity");
  return worked(attempt, "a host process moved between CPUs");
}
ATTACK(c42_affinity, "C42f", "move-process", "move a process of the host to another CPU", "pid namespace", 0);

static enum outcome run_c42_limits(struct attempt* attempt) {
  struct rlimit limits;
  if (prlimit(attempt->stage->pid, RLIMIT_CORE, NULL, &limits) != 0) return refused(attempt, "prlimit");
  return worked(attempt, "limits of a host process");
}
ATTACK(c42_limits, "C42g", "limits-of-host", "read and set limits of a host process",
       "pid namespace, identity?, seccomp", 0);

static enum outcome run_c43_abstract(struct attempt* attempt) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path + 1, attempt->stage->abstract, sizeof address.sun_path - 2);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return refused(attempt, "socket");
  const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(attempt->stage->abstract));
  if (connect(fd, (struct sockaddr*)&address, size) != 0) return refused(attempt, "connect");
  return worked(attempt, "an abstract socket of the host");
}
ATTACK(c43_abstract, "C43", "abstract-socket", "connect to an abstract socket of the host", "network, landlock", 0);

static enum outcome inet(struct attempt* attempt, int type, int port) {
  if (port == 0) return unable(attempt, "no listener");
  const struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((unsigned short)port)};
  const int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
  if (fd < 0) return refused(attempt, "socket");
  if (connect(fd, (const struct sockaddr*)&address, sizeof address) != 0) return refused(attempt, "connect");
  if (send(fd, "x", 1, MSG_NOSIGNAL) != 1) return refused(attempt, "send");
  // A datagram that nobody takes is answered by an ICMP message, which the next call tells.
  usleep(20 * 1000);
  if (send(fd, "x", 1, MSG_NOSIGNAL) != 1) return refused(attempt, "send");
  return worked(attempt, "a listener on the host's loopback");
}
static enum outcome run_c44_tcp(struct attempt* attempt) {
  return inet(attempt, SOCK_STREAM, attempt->stage->tcp_port);
}
ATTACK(c44_tcp, "C44a", "loopback-tcp", "connect to the host's loopback", "network", 0);
static enum outcome run_c44_udp(struct attempt* attempt) { return inet(attempt, SOCK_DGRAM, attempt->stage->udp_port); }
ATTACK(c44_udp, "C44b", "loopback-udp", "send a datagram to the host's loopback", "network", 0);

static enum outcome run_c45_shm(struct attempt* attempt) {
  if (attempt->stage->shm_id == 0) return unable(attempt, "no shared memory");
  const char* memory = shmat(attempt->stage->shm_id, NULL, SHM_RDONLY);
  if (memory == (const char*)-1) return refused(attempt, "shmat");
  if (!memory_holds(memory, 4096, attempt->stage->secret)) return errno = EINVAL, refused(attempt, "other memory");
  return worked(attempt, "the secret");
}
ATTACK(c45_shm, "C45a", "sysv-memory", "attach SysV memory of the host", "ipc namespace, seccomp", 0);

static enum outcome run_c45_mqueue(struct attempt* attempt) {
  if (attempt->stage->mqueue == NULL) return unable(attempt, "no message queues here");
  const mqd_t queue = mq_open(attempt->stage->mqueue, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  return queue == (mqd_t)-1 ? refused(attempt, "mq_open") : worked(attempt, "a message queue of the host");
}
ATTACK(c45_mqueue, "C45b", "posix-queue", "open a message queue of the host", "ipc namespace, seccomp", 0);

static enum outcome run_c45_list(struct attempt* attempt) {
  struct shmid_ds status;
  struct shm_info info;
  if (shmctl(0, SHM_INFO, (struct shmid_ds*)&info) < 0) return refused(attempt, "SHM_INFO");
  if (shmctl(attempt->stage->shm_id, IPC_STAT, &status) < 0) return refused(attempt, "IPC_STAT");
  return worked(attempt, "the host's IPC objects");
}
ATTACK(c45_list, "C45c", "list-ipc", "look at IPC objects of the host", "ipc namespace, seccomp", 0);
