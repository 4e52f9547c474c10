// New namespaces, in which a guest would be root and reach kernel code that only root reaches.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>

#include "knock.h"

static enum outcome run_b27_unshare_user(struct attempt* attempt) {
  if (unshare(CLONE_NEWUSER) != 0) return refused(attempt, "unshare");
  return worked(attempt, "root of a user namespace");
}
ATTACK(b27_unshare_user, "B27a", "unshare-user", "become root of a user namespace by unshare", "seccomp", 0);

static enum outcome run_b27_unshare_net(struct attempt* attempt) {
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return refused(attempt, "unshare");
  return worked(attempt, "root of a network namespace");
}
ATTACK(b27_unshare_net, "B27b", "unshare-net", "a network namespace, and root's sockets in it", "seccomp", 0);

static enum outcome ended(struct attempt* attempt, long child, const char* by) {
  if (child == 0) _exit(0);
  if (child < 0) return refused(attempt, by);
  waitpid((pid_t)child, NULL, 0);
  return worked(attempt, "a process in a new user namespace");
}

static enum outcome run_b27_clone_user(struct attempt* attempt) {
  return ended(attempt, syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0), "clone");
}
ATTACK(b27_clone_user, "B27c", "clone-user", "become root of a user namespace by clone", "seccomp", 0);

struct arguments {  // struct clone_args, as far as it is needed
  uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
};

static enum outcome run_b27_clone3_user(struct attempt* attempt) {
  struct arguments arguments = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
  return ended(attempt, syscall(SYS_clone3, &arguments, sizeof arguments), "clone3");
}
ATTACK(b27_clone3_user, "B27d", "clone3-user", "the same by clone3, whose flags no filter sees", "seccomp", 0);

static enum outcome run_b27_setns_parent(struct attempt* attempt) {
  seek_power();
  const int pidfd = (int)syscall(SYS_pidfd_open, getppid(), 0);
  if (pidfd < 0) return refused(attempt, "pidfd_open");
  if (syscall(SYS_setns, pidfd, CLONE_NEWNS) != 0 && is_denied(errno)) {
    return refused(attempt, "setns to its parent's namespaces");
  }
  return worked(attempt, "the mount namespace of its parent");
}
ATTACK(b27_setns_parent, "B27e", "setns-parent", "enter the mount namespace of its parent", "seccomp, capabilities", 0);

static enum outcome run_b27_setns_host(struct attempt* attempt) {
  if (attempt->stage->pid <= 0) return unable(attempt, "no process of the host");
  const int pidfd = (int)syscall(SYS_pidfd_open, attempt->stage->pid, 0);
  if (pidfd < 0) return refused(attempt, "pidfd_open of a host process");
  if (syscall(SYS_setns, pidfd, CLONE_NEWNS) != 0) return refused(attempt, "setns to a host process");
  return worked(attempt, "the mount namespace of the host");
}
ATTACK(b27_setns_host, "B27f", "setns-host", "enter the mount namespace of the host",
       "pid namespace, seccomp, capabilities, identity", 0);

// Made by a grandchild: outside, the new process is then a child of this one and nobody else's surprise.
static enum outcome run_b27_clone_parent(struct attempt* attempt) {
  int ends[2];
  if (pipe(ends) != 0) return refused(attempt, "pipe");
  const pid_t middle = fork();
  if (middle == 0) {
    const long sibling = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
    const int error = sibling < 0 ? errno : 0;
    if (sibling != 0 && write(ends[1], &error, sizeof error) < 0) _exit(1);
    _exit(0);
  }
  int error = ECHILD;
  if (read(ends[0], &error, sizeof error) != sizeof error) error = ECHILD;
  while (waitpid(-1, NULL, 0) > 0) {
  }
  errno = error;
  return error != 0 ? refused(attempt, "CLONE_PARENT") : worked(attempt, "a child for its parent to wait for");
}
ATTACK(b27_clone_parent, "B27g", "clone-parent", "give its parent a child that it knows nothing of", "seccomp", 0);
