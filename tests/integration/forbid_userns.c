/* forbid_userns [--powerless|--listened] CMD ARGS…: runs a command on a host that forbids user namespaces.
 *
 * A seccomp filter answers unshare and clone with CLONE_NEWUSER by EPERM, and clone3, whose flags a filter can't see,
 * by ENOSYS: what container runtimes and hardened service managers do.
 *   --powerless  user namespaces can be made, but mount is refused by EACCES: what AppArmor does on Ubuntu.
 *   --listened   nothing is refused, but the filter has a listener, so that no second one can be had (EBUSY).
 * Exits 125 when the filter can't be installed. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF_EQUAL(value, then, otherwise) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (then), (otherwise))
#define ANSWER(code) BPF_STMT(BPF_RET | BPF_K, (code))
#define COUNT(array) (unsigned short)(sizeof(array) / sizeof((array)[0]))

static struct sock_filter forbidding[] = {
    LOAD(nr),
    IF_EQUAL(SYS_clone3, 4, 0),
    IF_EQUAL(SYS_unshare, 1, 0),
    IF_EQUAL(SYS_clone, 0, 4),
    LOAD(args[0]), /* the low half, on little-endian machines: flags of both calls */
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NEWUSER, 1, 2),
    ANSWER(SECCOMP_RET_ERRNO | ENOSYS),
    ANSWER(SECCOMP_RET_ERRNO | EPERM),
    ANSWER(SECCOMP_RET_ALLOW),
};

static struct sock_filter powerless[] = {
    LOAD(nr),
    IF_EQUAL(SYS_mount, 2, 0),
    IF_EQUAL(SYS_move_mount, 1, 0),
    ANSWER(SECCOMP_RET_ALLOW),
    ANSWER(SECCOMP_RET_ERRNO | EACCES),
};

static struct sock_filter allowing[] = {ANSWER(SECCOMP_RET_ALLOW)};

static int Install(struct sock_filter* code, unsigned short length, unsigned long flags) {
  struct sock_fprog program = {.len = length, .filter = code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 && argv[1][0] == '-' ? argv[1] : "";
  char** command = argv + (*mode != '\0' ? 2 : 1);
  int done = -1;
  if (argc < 2 || *command == NULL) {
    fprintf(stderr, "usage: forbid_userns [--powerless|--listened] CMD ARGS...\n");
    return 125;
  }
  if (strcmp(mode, "--powerless") == 0) {
    done = Install(powerless, COUNT(powerless), 0);
  } else if (strcmp(mode, "--listened") == 0) {
    done = Install(allowing, COUNT(allowing), SECCOMP_FILTER_FLAG_NEW_LISTENER);
    /* The listener ends with its last descriptor: it must survive the exec. */
    if (done >= 0) done = fcntl(done, F_SETFD, 0);
  } else {
    done = Install(forbidding, COUNT(forbidding), 0);
  }
  if (done < 0) {
    fprintf(stderr, "forbid_userns: can't install the filter: %s\n", strerror(errno));
    return 125;
  }
  execvp(*command, command);
  fprintf(stderr, "forbid_userns: can't run %s: %s\n", *command, strerror(errno));
  return 127;
}
