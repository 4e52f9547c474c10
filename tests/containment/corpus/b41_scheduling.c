// More of the processor and of memory than a neighbour gets: real-time scheduling, priorities, locked pages.
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "knock.h"

// SCHED_RESET_ON_FORK, lowest priority, and back at once.
static enum outcome run_b41_fifo(struct attempt* attempt) {
  const struct sched_param first = {.sched_priority = 1};
  const struct sched_param none = {0};
  if (syscall(SYS_sched_setscheduler, 0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) != 0)
    return refused(attempt, "SCHED_FIFO");
  syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &none);
  return worked(attempt, "real-time scheduling");
}
ATTACK(b41_fifo, "B41a", "sched-fifo", "schedule itself before everybody else", "seccomp, capabilities", 0);

static enum outcome run_b41_deadline(struct attempt* attempt) {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attr = {sizeof attr, SCHED_DEADLINE, 0, 0, 0, 100000, 100000000, 100000000};
  if (syscall(SYS_sched_setattr, 0, &attr, 0) != 0) return refused(attempt, "SCHED_DEADLINE");
  const struct sched_param none = {0};
  syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &none);
  return worked(attempt, "deadline scheduling");
}
ATTACK(b41_deadline, "B41b", "sched-deadline", "the same by sched_setattr", "seccomp, capabilities", 0);

KNOCK(b41_sched_attributes, "B41c", "sched-attributes", "reach sched_setattr, whose policy no filter sees", "seccomp",
      0, SYS_sched_setattr, 0, NOWHERE, 0);

static enum outcome run_b41_nice(struct attempt* attempt) {
  if (setpriority(PRIO_PROCESS, 0, -20) != 0) return refused(attempt, "nice -20");
  setpriority(PRIO_PROCESS, 0, 0);
  return worked(attempt, "the highest priority");
}
ATTACK(b41_nice, "B41d", "nice", "raise its priority", "capabilities", 0);

static enum outcome run_b41_mlockall(struct attempt* attempt) {
  if (syscall(SYS_mlockall, 2 /* future */) != 0) return refused(attempt, "mlockall");
  syscall(SYS_munlockall);
  return worked(attempt, "all memory of its future locked");
}
ATTACK(b41_mlockall, "B41e", "mlockall", "lock all of its memory", "seccomp", 0);

static enum outcome run_b41_mlock(struct attempt* attempt) {
  const size_t size = 1 << 20;
  void* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mlock(memory, size) != 0) return refused(attempt, "mlock of a mebibyte");
  munlock(memory, size);
  return worked(attempt, "a mebibyte that can't be swapped");
}
ATTACK(b41_mlock, "B41f", "mlock", "lock a mebibyte of memory", "capabilities", 0);

static enum outcome run_b41_parent_priority(struct attempt* attempt) {
  const pid_t parent = getppid();
  errno = 0;
  const int now = getpriority(PRIO_PROCESS, (id_t)parent);
  // To what it is: where it is allowed, nothing changes.
  if (setpriority(PRIO_PROCESS, (id_t)parent, now) != 0) return refused(attempt, "priority of its parent");
  return worked(attempt, "the priority of its parent is its to set");
}
ATTACK(b41_parent_priority, "B41g", "parent-priority", "slow the sandbox's init down, which keeps the deadline",
       "seccomp", 0);
