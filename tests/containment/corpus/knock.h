// knock.h: cases that are one system call each, for the files that hold a table of them. A call with arguments that the
// kernel turns down behind its permission check, or that changes nothing beyond the caller: EPERM, EACCES and ENOSYS
// are a refusal, any other answer means that a guest reaches that code.
#pragma once

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attack.h"

#define NOWHERE 1L  // a pointer that can't be read

static inline enum outcome knock(struct attempt* attempt, const char* name, long number, const long* a) {
  alarm(5);
  errno = 0;
  const long result = syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (result < 0 && is_denied(errno)) return refused(attempt, name);
  return worked(attempt, result < 0 ? "the kernel judges the arguments" : "the kernel did it");
}

// CASE(identifier) of cases.def, id, name, what it tries, guards, traits, number, up to six arguments.
#define KNOCK(identifier, id_, name_, tries_, guards_, traits_, number, ...) \
  static enum outcome run_##identifier(struct attempt* attempt) {            \
    if ((traits_) & NEEDS_POWER) seek_power();                               \
    return knock(attempt, name_, number, (const long[6]){__VA_ARGS__});      \
  }                                                                          \
  const struct attack identifier = {                                         \
      .id = id_, .name = name_, .tries = tries_, .guards = guards_, .run = run_##identifier, .traits = traits_}

#define ATTACK(identifier, id_, name_, tries_, guards_, traits_) \
  const struct attack identifier = {                             \
      .id = id_, .name = name_, .tries = tries_, .guards = guards_, .run = run_##identifier, .traits = traits_}
