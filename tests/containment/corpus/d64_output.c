// Output without end, in kinds that trouble who reads it: one line, escape sequences, all byte values. Bounded: four
// times what is allowed, and the last line still says how it went.
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "knock.h"

static enum outcome flood(struct attempt* attempt, const char* pattern, size_t length) {
  static char block[65536];
  const long wanted = 4 * (attempt->stage->output > 0 ? attempt->stage->output : 65536);
  for (size_t i = 0; i < sizeof block; ++i) block[i] = pattern[i % length];
  for (long done = 0; done < wanted;) {
    const ssize_t wrote = write(1, block, sizeof block);
    if (wrote < 0) return refused(attempt, "write");
    done += wrote;
  }
  if (write(1, "\n", 1) != 1) return refused(attempt, "write");
  return worked(attempt, "all of it was written");
}

static enum outcome run_d64_line(struct attempt* attempt) { return flood(attempt, "x", 1); }
ATTACK(d64_line, "D64a", "endless-line", "flood its reader with one line", "output limit", FLOODS_OUTPUT);

static enum outcome run_d64_escapes(struct attempt* attempt) { return flood(attempt, "\033]0;owned\007\033[2J", 14); }
ATTACK(d64_escapes, "D64b", "escape-sequences", "flood its reader with escape sequences", "output limit",
       FLOODS_OUTPUT);

static enum outcome run_d64_binary(struct attempt* attempt) {
  static char all[256];
  for (int i = 0; i < 256; ++i) all[i] = (char)i;
  return flood(attempt, all, sizeof all);
}
ATTACK(d64_binary, "D64c", "binary-output", "flood its reader with all byte values", "output limit", FLOODS_OUTPUT);
