// Traces on the host by ways that need no file and no kill: core dumps and signals that the kernel sends by itself.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "knock.h"

static enum outcome run_d66_core_dump(struct attempt* attempt) {
  struct rlimit limit;
  getrlimit(RLIMIT_CORE, &limit);
  limit.rlim_cur = limit.rlim_max;
  if (attempt->stage->scratch != NULL && chdir(attempt->stage->scratch) != 0) return refused(attempt, "scratch");
  const pid_t child = fork();
  if (child == 0) {
    setrlimit(RLIMIT_CORE, &limit);
    signal(SIGSEGV, SIG_DFL);
    *(volatile int*)8 = 1;
  }
  int status = 0;
  waitpid(child, &status, 0);
  char name[32];
  snprintf(name, sizeof name, "core.%d", (int)child);
  unlink(name);
  unlink("core");
  errno = EFBIG;
  if (!WCOREDUMP(status)) {
    return limit.rlim_max == 0 && !attempt->stage->inside ? unable(attempt, "the caller allows none either")
                                                          : refused(attempt, "no core was dumped");
  }
  return worked(attempt, "the kernel dumped its memory");
}
ATTACK(d66_core_dump, "D66a", "core-dump", "crash, to have the host write or handle a core dump", "supervisor", 0);

// To a core_pattern that names a program, 0 is no reason not to start it; only 1 is. So lowering the limit is the
// attack.
static enum outcome run_d66_core_program(struct attempt* attempt) {
  const struct rlimit none = {0, 0};
  struct rlimit now = {1, 1};
  if (setrlimit(RLIMIT_CORE, &none) != 0) return refused(attempt, "RLIMIT_CORE");
  getrlimit(RLIMIT_CORE, &now);
  errno = EPERM;
  if (now.rlim_cur != 0) return refused(attempt, "RLIMIT_CORE stays as it is");
  return worked(attempt, "a crash now starts the program of core_pattern");
}
ATTACK(d66_core_program, "D66b", "core-program", "lower the core limit to 0: the host's crash handler starts",
       "seccomp", 0);

static char state_of(pid_t pid) {
  char path[48], text[256];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  if (slurp(path, text, sizeof text) <= 0) return 0;
  const char* end = strrchr(text, ')');
  return end != NULL ? end[2] : 0;
}

// The kernel signals whoever owns a descriptor when something arrives. SIGSTOP can be seen from outside and taken back.
static enum outcome run_d67_setown(struct attempt* attempt) {
  const pid_t target = attempt->stage->pid;
  if (target <= 0) return unable(attempt, "no process of the host");
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return refused(attempt, "socketpair");
  if (fcntl(ends[0], F_SETOWN, target) != 0) return refused(attempt, "F_SETOWN");
  if (fcntl(ends[0], F_SETSIG, SIGSTOP) != 0 || fcntl(ends[0], F_SETFL, O_ASYNC | O_NONBLOCK) != 0) {
    return refused(attempt, "F_SETSIG");
  }
  const int sent = write(ends[1], "x", 1) == 1;
  int stopped = 0;
  for (int i = 0; i < 20 && sent && !stopped; ++i) {
    usleep(5000);
    stopped = state_of(target) == 'T';
  }
  char byte;
  fcntl(ends[0], F_SETSIG, SIGCONT);
  const int woken = read(ends[0], &byte, 1) == 1 && write(ends[1], "x", 1) == 1;
  usleep(20000);
  errno = EPERM;
  return stopped && woken ? worked(attempt, "a process of the host stopped")
                          : refused(attempt, "the signal did not arrive");
}
ATTACK(d67_setown, "D67", "setown", "have the kernel signal a process of the host", "pid namespace, landlock, identity",
       0);
