// More of the disk than allowed, in bytes, files and depth. All of it in the scratch directory, and removed again.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "knock.h"

enum { kMiB = 1 << 20 };

static int enter(const struct attempt* attempt) {
  return attempt->stage->scratch != NULL ? chdir(attempt->stage->scratch) : 0;
}

static long bytes_beyond(const struct attempt* attempt) {
  const long limit = attempt->stage->disk > 0 ? attempt->stage->disk : 16 * kMiB;
  return limit + limit / 2;
}

static long files_beyond(const struct attempt* attempt) {
  const long limit = attempt->stage->files > 0 ? attempt->stage->files : 500;
  return limit + limit / 2;
}

// A watcher that looks every so often gets the time to; a full disk is seen at once.
static void linger(void) { usleep(250000); }

static enum outcome run_d57_fill(struct attempt* attempt) {
  static char block[kMiB];
  memset(block, 'x', sizeof block);
  signal(SIGXFSZ, SIG_IGN);
  if (enter(attempt) != 0) return refused(attempt, "the scratch directory");
  const long wanted = bytes_beyond(attempt) / kMiB;
  long wrote = 0;
  int error = 0;
  for (int file = 0; file < 4 && error == 0; ++file) {  // in several, so that no limit of one file's size is met
    char name[16];
    snprintf(name, sizeof name, "fill%d", file);
    const int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return refused(attempt, "open");
    for (long i = 0; i < (wanted + 3) / 4 && error == 0; ++i) {
      if (write(fd, block, sizeof block) == kMiB) {
        ++wrote;
      } else {
        error = errno;
      }
    }
    close(fd);
  }
  linger();
  for (int file = 0; file < 4; ++file) {
    char name[16];
    snprintf(name, sizeof name, "fill%d", file);
    unlink(name);
  }
  errno = error != 0 ? error : ENOSPC;
  if (wrote < wanted) return refused(attempt, "write");
  char text[64];
  snprintf(text, sizeof text, "%ld MiB written", wrote);
  return worked(attempt, text);
}
ATTACK(d57_fill, "D57a", "disk-fill", "write more than its private disk holds", "disk limit", ENDED_BY_GUARD);

// Unlinked and still open: nobody who walks the directory sees it.
static enum outcome run_d57_unlinked(struct attempt* attempt) {
  static char block[kMiB];
  signal(SIGXFSZ, SIG_IGN);
  if (enter(attempt) != 0) return refused(attempt, "the scratch directory");
  const long wanted = bytes_beyond(attempt) / kMiB;
  for (long wrote = 0; wrote < wanted; ++wrote) {
    const int fd = open("unlinked", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || unlink("unlinked") != 0) return refused(attempt, "open");
    memset(block, 'x', sizeof block);
    if (write(fd, block, sizeof block) != kMiB) return refused(attempt, "write");
  }
  linger();
  return worked(attempt, "disk used by files without a name");
}
ATTACK(d57_unlinked, "D57b", "disk-fill-unlinked", "the same in files that have no name any more", "disk limit?",
       ENDED_BY_GUARD);

static enum outcome run_d58_inodes(struct attempt* attempt) {
  if (enter(attempt) != 0 || mkdir("inodes", 0700) != 0 || chdir("inodes") != 0) return refused(attempt, "mkdir");
  const long wanted = files_beyond(attempt);
  long made = 0;
  char name[32];
  for (; made < wanted; ++made) {
    snprintf(name, sizeof name, "f%ld", made);
    const int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) break;
    close(fd);
  }
  const int error = errno;
  linger();
  for (long i = 0; i < made; ++i) {
    snprintf(name, sizeof name, "f%ld", i);
    unlink(name);
  }
  if (chdir("..") == 0) rmdir("inodes");
  errno = error;
  if (made < wanted) return refused(attempt, "many small files");
  snprintf(attempt->detail, sizeof attempt->detail, "%ld files", made);
  return worked(attempt, "more files than allowed");
}
ATTACK(d58_inodes, "D58", "inode-fill", "make more files than allowed", "files limit", ENDED_BY_GUARD);

static enum outcome run_d59_sparse(struct attempt* attempt) {
  signal(SIGXFSZ, SIG_IGN);
  const off_t terabyte = (off_t)1 << 40;
  if (enter(attempt) != 0) return refused(attempt, "the scratch directory");
  const int fd = open("sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return refused(attempt, "open");
  unlink("sparse");
  if (ftruncate(fd, terabyte) != 0 || pwrite(fd, "x", 1, terabyte - 1) != 1)
    return refused(attempt, "a terabyte of holes");
  // Holes are no disk; the attack is to have room promised for them, or more than the limit behind the name.
  if (fallocate(fd, 0, 0, bytes_beyond(attempt)) != 0) return refused(attempt, "room behind the holes");
  linger();
  return worked(attempt, "a terabyte, and more room than allowed behind it");
}
ATTACK(d59_sparse, "D59", "sparse-file", "a file of a terabyte, with room behind more than allowed", "disk limit?",
       ENDED_BY_GUARD);

// Removing a thousand directories takes seconds on a disk, and the control has to: it prefers memory where there is
// some.
static int enter_fast(const struct attempt* attempt, char* made) {
  struct statfs kind;
  if (enter(attempt) != 0) return -1;
  if (attempt->stage->inside || (statfs(".", &kind) == 0 && kind.f_type == TMPFS_MAGIC)) return 0;
  snprintf(made, 48, "/dev/shm/belljar-deep-%d", (int)getpid());
  if (mkdir(made, 0700) != 0 || chdir(made) != 0) made[0] = '\0';
  return 0;
}

// A path longer than any call takes: who cleans up by paths leaves it behind.
static enum outcome run_d60_deep(struct attempt* attempt) {
  char made[48] = "";
  if (enter_fast(attempt, made) != 0) return refused(attempt, "the scratch directory");
  const long wanted = files_beyond(attempt);
  long depth = 0;
  while (depth < wanted && mkdir("deeper", 0700) == 0 && chdir("deeper") == 0) ++depth;
  const int error = errno;
  const long reached = depth;
  linger();
  // Inside it stays, for the sandbox to clean up.
  while (!attempt->stage->inside && depth > 0 && chdir("..") == 0 && rmdir("deeper") == 0) --depth;
  if (made[0] != '\0') rmdir(made);
  errno = error;
  return reached < wanted ? refused(attempt, "a deep tree") : worked(attempt, "a tree deeper than allowed");
}
ATTACK(d60_deep, "D60", "deep-tree", "leave a tree deeper than any path names", "files limit", ENDED_BY_GUARD);
