// Rings of requests that the kernel serves without a system call for each: seccomp sees none of them.
#define _GNU_SOURCE
#include <linux/aio_abi.h>
#include <string.h>

#include "knock.h"

static enum outcome run_b23_io_uring(struct attempt* attempt) {
  char parameters[120];
  memset(parameters, 0, sizeof parameters);
  if (syscall(SYS_io_uring_setup, 4, parameters) < 0) return refused(attempt, "io_uring_setup");
  return worked(attempt, "a ring");
}
ATTACK(b23_io_uring, "B23a", "io-uring", "set up an io_uring, whose requests no filter sees", "seccomp", 0);

static enum outcome run_b23_aio(struct attempt* attempt) {
  aio_context_t context = 0;
  if (syscall(SYS_io_setup, 4, &context) < 0) return refused(attempt, "io_setup");
  syscall(SYS_io_destroy, context);
  return worked(attempt, "an asynchronous context");
}
ATTACK(b23_aio, "B23b", "kernel-aio", "the older asynchronous input and output", "seccomp", 0);

KNOCK(b23_io_uring_register, "B23c", "io-uring-register", "io_uring_register without a ring", "seccomp", 0,
      SYS_io_uring_register, -1, 0, 0, 0);
