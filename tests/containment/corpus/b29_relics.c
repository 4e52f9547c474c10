// Calls that hardly any program needs any more, and that bugs were found in.
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>

#include "knock.h"

static enum outcome run_b29_modify_ldt(struct attempt* attempt) {
#ifdef __x86_64__
  const struct {
    unsigned entry, base, limit, flags;
  } segment = {0, 0, 0xfffff, 0x51};
  if (syscall(SYS_modify_ldt, 0x11, &segment, sizeof segment) != 0) return refused(attempt, "modify_ldt");
  return worked(attempt, "a segment of its own");
#else
  return unable(attempt, "only x86 has segments");
#endif
}
ATTACK(b29_modify_ldt, "B29a", "modify-ldt", "define a processor segment", "seccomp", 0);

static enum outcome take_on(struct attempt* attempt, unsigned long persona) {
  const long before = syscall(SYS_personality, persona);
  if (before < 0 && is_denied(errno)) return refused(attempt, "personality");
  syscall(SYS_personality, before);
  return worked(attempt, "other rules for programs it starts");
}
static enum outcome run_b29_no_randomize(struct attempt* attempt) { return take_on(attempt, ADDR_NO_RANDOMIZE); }
ATTACK(b29_no_randomize, "B29b", "no-randomize", "switch address randomization off", "seccomp", 0);
static enum outcome run_b29_read_implies_exec(struct attempt* attempt) { return take_on(attempt, READ_IMPLIES_EXEC); }
ATTACK(b29_read_implies_exec, "B29c", "read-implies-exec", "make all memory executable", "seccomp", 0);

static enum outcome run_b29_remap_file_pages(struct attempt* attempt) {
  const long page = 4096;
  char* memory = shared_memory(attempt->stage, 2 * page);
  if (memory == NULL) return refused(attempt, "a file that it may write");
  if (syscall(SYS_remap_file_pages, memory, page, 0, 1, 0) != 0) return refused(attempt, "remap_file_pages");
  return worked(attempt, "pages in another order");
}
ATTACK(b29_remap_file_pages, "B29d", "remap-file-pages", "remap_file_pages, kept for old programs", "seccomp", 0);

#ifdef SYS_uselib
KNOCK(b29_uselib, "B29e", "uselib", "load a library of the a.out format", "seccomp", 0, SYS_uselib, NOWHERE);
KNOCK(b29_sysfs, "B29f", "sysfs", "sysfs(): count the filesystems of the kernel", "seccomp", 0, SYS_sysfs, 3, 0, 0);
KNOCK(b29_ustat, "B29g", "ustat", "ustat() of a device of the host", "seccomp", 0, SYS_ustat, 0, NOWHERE);
#else
KNOCK(b29_uselib, "B29e", "uselib", "load a library of the a.out format", "seccomp", 0, -1);
KNOCK(b29_sysfs, "B29f", "sysfs", "sysfs(): count the filesystems of the kernel", "seccomp", 0, -1);
KNOCK(b29_ustat, "B29g", "ustat", "ustat() of a device of the host", "seccomp", 0, -1);
#endif
