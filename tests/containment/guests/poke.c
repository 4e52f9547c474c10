// Reaches for sandbox init, which may be of the same user: signals that look as if they came from nobody, resource
// limits, priorities. Prints for each way "WAY done" or "WAY ERRNO", and "alive" when it is still there afterwards.
//
//   poke PID       0 is its own parent
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static void tell(const char* way, long result) {
  if (result >= 0) {
    printf("%s done\n", way);
  } else {
    printf("%s %d\n", way, errno);
  }
  fflush(stdout);
}

// What the kernel sends by itself has the pid 0; what a process queues has the pid that it writes there.
static void signal_as_nobody(pid_t target, int number) {
  static const int kCodes[] = {SI_QUEUE, SI_TIMER, SI_MESGQ, SI_ASYNCIO, SI_SIGIO, SI_TKILL, SI_USER, SI_KERNEL};
  for (size_t i = 0; i < sizeof kCodes / sizeof *kCodes; ++i) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = number;
    info.si_code = kCodes[i];
    char way[64];
    snprintf(way, sizeof way, "rt_sigqueueinfo-%d-%d", number, kCodes[i]);
    tell(way, syscall(SYS_rt_sigqueueinfo, target, number, &info));
    snprintf(way, sizeof way, "rt_tgsigqueueinfo-%d-%d", number, kCodes[i]);
    tell(way, syscall(SYS_rt_tgsigqueueinfo, target, target, number, &info));
    const int pidfd = (int)syscall(SYS_pidfd_open, target, 0);
    snprintf(way, sizeof way, "pidfd_send_signal-%d-%d", number, kCodes[i]);
    tell(way, syscall(SYS_pidfd_send_signal, pidfd, number, &info, 0));
    close(pidfd);
  }
}

static void limit(pid_t target) {
  const struct rlimit none = {0, 0};
  const struct rlimit little = {1, 1};
  struct rlimit old;
  tell("prlimit-cpu", syscall(SYS_prlimit64, target, RLIMIT_CPU, &little, NULL));
  tell("prlimit-nofile", syscall(SYS_prlimit64, target, RLIMIT_NOFILE, &none, NULL));
  tell("prlimit-read", syscall(SYS_prlimit64, target, RLIMIT_NOFILE, NULL, &old));
}

static void slow_down(pid_t target) {
  const struct sched_param idle = {0};
  const struct sched_param first = {1};
  unsigned long cpu = 1;
  struct {
    unsigned size, policy;
    unsigned long long flags;
    int nice;
    unsigned priority;
    unsigned long long more[3];
  } attr = {sizeof attr, SCHED_IDLE, 0, 19, 0, {0}};
  tell("setpriority", syscall(SYS_setpriority, PRIO_PROCESS, target, 19));
  tell("sched_setscheduler-idle", syscall(SYS_sched_setscheduler, target, SCHED_IDLE, &idle));
  tell("sched_setscheduler-fifo", syscall(SYS_sched_setscheduler, target, SCHED_FIFO, &first));
  tell("sched_setattr", syscall(SYS_sched_setattr, target, &attr, 0));
  tell("sched_setaffinity", syscall(SYS_sched_setaffinity, target, sizeof cpu, &cpu));
  tell("ioprio_set", syscall(SYS_ioprio_set, 1, target, 3 << 13));
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const pid_t target = atoi(argv[1]) != 0 ? atoi(argv[1]) : getppid();
  signal_as_nobody(target, SIGTERM);
  signal_as_nobody(target, SIGCHLD);
  limit(target);
  slow_down(target);
  usleep(300000);
  // Init must still have its descriptors and its time: it reaps this orphan.
  if (fork() == 0) {
    if (fork() == 0) usleep(20000);
    _exit(0);
  }
  usleep(100000);
  puts("alive");
  return 6;
}
