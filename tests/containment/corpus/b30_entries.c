// Other doors into the kernel than the one that a filter of system calls guards, and numbers that it has never heard
// of.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/wait.h>

#include "knock.h"

static enum outcome run_b30_int80(struct attempt* attempt) {
#ifdef __x86_64__
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");  // getpid of 32 bits
  if (result > 0) return worked(attempt, "a call by the 32-bit entry");
  errno = (int)-result;
  return refused(attempt, "int 0x80");
#else
  return unable(attempt, "only x86_64 has this entry");
#endif
}
// Where a kernel has no such entry the instruction is a fault, and the process ends by SIGSEGV.
ATTACK(b30_int80, "B30", "int80", "make a call by the 32-bit entry, int 0x80", "seccomp", ENDED_BY_GUARD);

static enum outcome run_b31_x32(struct attempt* attempt) {
#ifdef __x86_64__
  if (syscall(0x40000000L + 39) > 0) return worked(attempt, "a call with an x32 number");
  if (errno == ENOSYS && !attempt->stage->inside) return unable(attempt, "this kernel has no x32 calls");
  return refused(attempt, "x32 number");
#else
  return unable(attempt, "only x86_64 has these numbers");
#endif
}
ATTACK(b31_x32, "B31", "x32", "make a call with an x32 number", "seccomp", ENDED_BY_GUARD);

// Younger than the filter's list may be. 462 is mseal, which the list allows.
static enum outcome run_b32_unknown_calls(struct attempt* attempt) {
  alarm(5);
  int answers = 0;
  long last = 0;
  for (long number = 454; number < 1200; ++number) {
    if (number == 462 || syscall(number, -1L, -1L, -1L, -1L, -1L, -1L) >= 0 || !is_denied(errno)) {
      if (number != 462) ++answers, last = number;
    }
  }
  char text[80];
  snprintf(text, sizeof text, "%d young calls answer, up to %ld", answers, last);
  if (answers > 0) return worked(attempt, text);
  errno = ENOSYS;
  return refused(attempt, "numbers 454 to 1199");
}
ATTACK(b32_unknown_calls, "B32a", "unknown-calls", "call numbers that the filter may never have heard of", "seccomp",
       0);

// The kernel takes the low 32 bits of the number; a filter that is not as careless lets the rest pass.
static enum outcome run_b32_high_bits(struct attempt* attempt) {
  const long before = syscall(SYS_personality | 0x700000000L, ADDR_NO_RANDOMIZE);
  if (before < 0 && is_denied(errno)) return refused(attempt, "a call with high bits in its number");
  syscall(SYS_personality, before);
  return worked(attempt, "personality() under another number");
}
ATTACK(b32_high_bits, "B32b", "high-bits", "set high bits in the number of a refused call", "seccomp", 0);

static enum outcome run_b32_high_flags(struct attempt* attempt) {
  const long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD | (0x5L << 32), 0, 0, 0, 0);
  if (child == 0) _exit(0);
  if (child < 0) return refused(attempt, "clone with high bits");
  waitpid((pid_t)child, NULL, 0);
  return worked(attempt, "a user namespace by flags with high bits");
}
ATTACK(b32_high_flags, "B32c", "high-flags", "set high bits in the flags of a refused call", "seccomp", 0);
