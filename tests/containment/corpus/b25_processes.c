// Hands on other processes: one of the host, and its own parent, which inside is the sandbox's init with the line to
// the supervisor open.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "knock.h"

static enum outcome run_b25_ptrace_child(struct attempt* attempt) {
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  const long got = syscall(SYS_ptrace, 0x4206 /* PTRACE_SEIZE */, child, 0, 0);
  const int error = errno;
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  errno = error;
  return got < 0 ? refused(attempt, "ptrace") : worked(attempt, "a child's system calls are its to change");
}
ATTACK(b25_ptrace_child, "B25a", "ptrace-child", "trace a child, to change calls behind a filter", "seccomp", 0);

static enum outcome trace(struct attempt* attempt, pid_t target) {
  if (target <= 0) return unable(attempt, "no process to trace");
  if (syscall(SYS_ptrace, 0x4206, target, 0, 0) < 0) return refused(attempt, "PTRACE_SEIZE");
  // A seized process runs on; who traced it only has to let go.
  syscall(SYS_ptrace, 0x4207 /* PTRACE_INTERRUPT */, target, 0, 0);
  waitpid(target, NULL, 0);
  syscall(SYS_ptrace, PTRACE_DETACH, target, 0, 0);
  return worked(attempt, "traced");
}
static enum outcome run_b25_ptrace_host(struct attempt* attempt) { return trace(attempt, attempt->stage->pid); }
ATTACK(b25_ptrace_host, "B25b", "ptrace-host", "trace a process of the host",
       "seccomp, pid namespace, identity, landlock", 0);

// EFAULT comes behind the permission: the address is wrong, the door is open.
static enum outcome reach(struct attempt* attempt, pid_t target, long call) {
  if (target <= 0) return unable(attempt, "no process to reach");
  char byte = 0;
  const struct iovec here = {&byte, 1};
  const struct iovec there = {(void*)NOWHERE, 1};
  if (syscall(call, target, &here, 1UL, &there, 1UL, 0UL) < 0 && errno != EFAULT) return refused(attempt, "its memory");
  return worked(attempt, "the memory of another process");
}
static enum outcome run_b25_read_memory(struct attempt* attempt) {
  return reach(attempt, attempt->stage->pid, SYS_process_vm_readv);
}
ATTACK(b25_read_memory, "B25c", "read-memory", "process_vm_readv from a process of the host",
       "seccomp, pid namespace, identity, landlock", 0);
static enum outcome run_b25_write_memory(struct attempt* attempt) {
  return reach(attempt, attempt->stage->pid, SYS_process_vm_writev);
}
ATTACK(b25_write_memory, "B25d", "write-memory", "process_vm_writev into a process of the host",
       "seccomp, pid namespace, identity, landlock", 0);
static enum outcome run_b25_parent_memory(struct attempt* attempt) {
  return reach(attempt, getppid(), SYS_process_vm_writev);
}
ATTACK(b25_parent_memory, "B25e", "parent-memory", "write into its parent, the sandbox's init", "seccomp, landlock", 0);

static enum outcome steal(struct attempt* attempt, pid_t target) {
  if (target <= 0) return unable(attempt, "no process to take from");
  const int pidfd = (int)syscall(SYS_pidfd_open, target, 0);
  if (pidfd < 0) return refused(attempt, "pidfd_open");
  for (int fd = 0; fd < 64; ++fd) {
    if (syscall(SYS_pidfd_getfd, pidfd, fd, 0) >= 0) return worked(attempt, "a descriptor of another process");
    if (errno != EBADF) break;
  }
  return refused(attempt, "pidfd_getfd");
}
static enum outcome run_b25_steal_host_fd(struct attempt* attempt) { return steal(attempt, attempt->stage->pid); }
ATTACK(b25_steal_host_fd, "B25f", "steal-host-fd", "take a descriptor from a process of the host",
       "pid namespace, seccomp, identity, landlock", 0);
static enum outcome run_b25_steal_parent_fd(struct attempt* attempt) { return steal(attempt, getppid()); }
ATTACK(b25_steal_parent_fd, "B25g", "steal-parent-fd", "take init's line to the supervisor, to forge a result",
       "seccomp, landlock", 0);

static enum outcome run_b25_kcmp(struct attempt* attempt) {
  const pid_t target = attempt->stage->pid;
  if (target <= 0) return unable(attempt, "no process to compare with");
  if (syscall(SYS_kcmp, getpid(), target, 1 /* KCMP_VM */, 0, 0) < 0) return refused(attempt, "kcmp");
  return worked(attempt, "order of kernel addresses");
}
ATTACK(b25_kcmp, "B25h", "kcmp", "compare kernel objects with a process of the host",
       "seccomp, pid namespace, identity, landlock", 0);

static enum outcome run_b25_parent_limits(struct attempt* attempt) {
  struct {
    uint64_t now, most;
  } limit;
  const pid_t parent = getppid();
  // To what it is: nothing changes, where it is allowed.
  if (syscall(SYS_prlimit64, parent, 7 /* RLIMIT_NOFILE */, 0, &limit) < 0 ||
      syscall(SYS_prlimit64, parent, 7, &limit, 0) < 0) {
    return refused(attempt, "prlimit64 of its parent");
  }
  return worked(attempt, "the limits of its parent are its to set");
}
ATTACK(b25_parent_limits, "B25i", "parent-limits", "set the limits of the sandbox's init", "seccomp", 0);
