// O_TMPFILE makes a file without a name: nothing to clean up, on the host either.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>

#include "attack.h"

static enum outcome run(struct attempt* attempt) {
  for (const char* const* path = (const char* const[]){"/", "/usr", "/usr/bin", "/etc", "/lib", 0}; *path; ++path) {
    if (open(*path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) >= 0) return worked(attempt, *path);
  }
  return refused(attempt, "files in /, /usr, /etc");
}

const struct attack a21_root_writable = {
    .id = "A21",
    .name = "root-writable",
    .tries = "make a file in /, /usr, /etc",
    .guards = "root filesystem, landlock, identity",
    .run = run,
};
