// What a guest can do to the files and disks of the host without writing: make others wait.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "knock.h"

static int own_file(const struct attempt* attempt) {
  if (attempt->stage->scratch != NULL && chdir(attempt->stage->scratch) != 0) return -1;
  const int made = open("leased", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  close(made);
  const int fd = open("leased", O_RDONLY | O_CLOEXEC);
  unlink("leased");
  return fd;
}

// On a file of its own; on one of the host that it may only read, whoever opens that for writing waits for 45 s.
static enum outcome run_b33_lease(struct attempt* attempt) {
  const int fd = own_file(attempt);
  if (fd < 0) return unable(attempt, "no file to lease");
  signal(SIGIO, SIG_IGN);
  if (fcntl(fd, F_SETLEASE, F_RDLCK) != 0) return refused(attempt, "F_SETLEASE");
  return worked(attempt, "a lease: who opens the file for writing waits");
}
ATTACK(b33_lease, "B33l", "lease", "block writers of a file that it may only read", "seccomp", 0);

static enum outcome run_b33_dnotify(struct attempt* attempt) {
  const int fd = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return unable(attempt, "no /usr");
  signal(SIGIO, SIG_IGN);
  if (fcntl(fd, F_NOTIFY, DN_ACCESS | DN_CREATE) != 0) return refused(attempt, "F_NOTIFY");
  return worked(attempt, "told of what the host does in a directory");
}
ATTACK(b33_dnotify, "B33m", "dnotify", "be told what the host does in a directory", "seccomp", 0);

// Of its scratch directory; on /usr the host's own disk would be flushed, which is what this is about.
static enum outcome run_b33_syncfs(struct attempt* attempt) {
  const int fd = own_file(attempt);
  if (fd < 0 || syncfs(fd) != 0) return refused(attempt, "syncfs");
  return worked(attempt, "a whole filesystem flushed, as of any file it can read");
}
ATTACK(b33_syncfs, "B33n", "syncfs", "make the host flush its disks, again and again", "seccomp", 0);
