// Filters of the guest's own, stacked onto the sandbox's, and races against whoever answers refused calls.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "knock.h"

static enum outcome run_b39_listener(struct attempt* attempt) {
  struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const struct sock_fprog program = {1, code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  if (fd < 0) return refused(attempt, "seccomp listener");
  return worked(attempt, "a listener that answers before the sandbox's");
}
ATTACK(b39_listener, "B39a", "seccomp-listener", "stack a listener of its own onto the sandbox's", "seccomp", 0);

static enum outcome run_b39_filter(struct attempt* attempt) {
  struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const struct sock_fprog program = {1, code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return refused(attempt, "prctl seccomp");
  return worked(attempt, "a program of its own in every call");
}
ATTACK(b39_filter, "B39b", "seccomp-filter", "load a filter of its own", "seccomp", 0);

struct arguments {  // struct clone_args
  uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
};

static struct arguments shared_arguments;
static volatile int over, flipping;

static void* flip_flags(void* unused) {
  while (!over) {
    flipping = 1;
    *(volatile uint64_t*)&shared_arguments.flags = 0;
    *(volatile uint64_t*)&shared_arguments.flags = CLONE_NEWUSER;
  }
  return unused;
}

// If flags that looked harmless when they were read were let through, others may be there when the kernel reads them.
static enum outcome run_b40_race_flags(struct attempt* attempt) {
  struct stat own, its;
  if (stat("/proc/self/ns/user", &own) != 0) return unable(attempt, "no /proc to tell namespaces by");
  shared_arguments.exit_signal = SIGCHLD;
  pthread_t flipper;
  if (pthread_create(&flipper, NULL, flip_flags, NULL) != 0) return refused(attempt, "thread");
  while (!flipping) sched_yield();
  int won = 0;
  int error = 0;
  for (int i = 0; i < 300 && !won; ++i) {
    const long child = syscall(SYS_clone3, &shared_arguments, sizeof shared_arguments);
    if (child == 0) _exit(stat("/proc/self/ns/user", &its) == 0 && its.st_ino != own.st_ino);
    int status = 0;
    if (child < 0) error = errno;
    if (child > 0 && waitpid((pid_t)child, &status, 0) == child) won = WIFEXITED(status) && WEXITSTATUS(status) == 1;
  }
  over = 1;
  pthread_join(flipper, NULL);
  errno = error;
  return won ? worked(attempt, "a user namespace by a race") : refused(attempt, "300 races of clone3");
}
ATTACK(b40_race_flags, "B40a", "race-flags", "change flags of clone3 between check and use", "seccomp", 0);

static char shared_path[256];
static const char* wanted_path;

static void* flip_path(void* unused) {
  while (!over) {
    flipping = 1;
    memcpy(shared_path, "/dev/null", 10);
    memcpy(shared_path, wanted_path, strlen(wanted_path) + 1);
  }
  return unused;
}

static enum outcome run_b40_race_path(struct attempt* attempt) {
  wanted_path = attempt->stage->file;
  if (wanted_path == NULL || strlen(wanted_path) >= sizeof shared_path) return unable(attempt, "no file to want");
  pthread_t flipper;
  if (pthread_create(&flipper, NULL, flip_path, NULL) != 0) return refused(attempt, "thread");
  while (!flipping) sched_yield();
  int won = 0;
  int error = ENOENT;
  for (int i = 0; i < 6000 && !won; ++i) {
    const int fd = open(shared_path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) error = errno;
    if (fd >= 0) won = fd_holds(fd, attempt->stage->secret);
    close(fd);
  }
  over = 1;
  pthread_join(flipper, NULL);
  errno = error;
  return won ? worked(attempt, "the secret by a race") : refused(attempt, "6,000 races of open");
}
ATTACK(b40_race_path, "B40b", "race-path", "change a path between check and use", "root filesystem, landlock, identity",
       0);

// Whoever counts refused calls gets tired at some point; the refusal itself must not.
static enum outcome run_b40_tire_listener(struct attempt* attempt) {
  alarm(8);
  for (int i = 0; i < 10500; ++i) syscall(SYS_unshare, 0);
  if (syscall(SYS_unshare, CLONE_NEWUSER) != 0) return refused(attempt, "unshare after 10,500 refusals");
  return worked(attempt, "a user namespace, once nobody listened");
}
ATTACK(b40_tire_listener, "B40c", "tire-listener", "make 10,500 refused calls, then try again", "seccomp", 0);

static void nothing(int number) { (void)number; }

// A call that waits for its answer is interrupted by a signal and made anew: answers must not go to the wrong one.
static enum outcome run_b40_interrupt(struct attempt* attempt) {
  const struct sigaction action = {.sa_handler = nothing};
  sigaction(SIGUSR1, &action, NULL);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    alarm(2);
    while (kill(parent, SIGUSR1) == 0) sched_yield();
    _exit(0);
  }
  int error = EPERM;
  int won = 0;
  for (int i = 0; i < 3000 && !won; ++i) {
    won = syscall(SYS_unshare, CLONE_NEWUSER) == 0;
    if (!won && errno != EINTR) error = errno;
  }
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  errno = error;
  return won ? worked(attempt, "a user namespace") : refused(attempt, "3,000 interrupted calls");
}
ATTACK(b40_interrupt, "B40d", "interrupt", "interrupt refused calls while they wait", "seccomp", 0);
