// What the supervisor reads of a guest: its output and its end.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "knock.h"

// A report as init would send it, written to every descriptor that takes it. Held if none is a socket: the standard
// streams are pipes, whose bytes are data and never a message.
static enum outcome run_f95_forge_report(struct attempt* attempt) {
  char report[64];
  memset(report, 0x05, sizeof report);
  for (int fd = 0; fd < 256; ++fd) {
    if (send(fd, report, sizeof report, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
      return worked(attempt, "a message to a socket");
  }
  return refused(attempt, "no socket among its descriptors");
}
ATTACK(f95_forge_report, "F95a", "forge-report", "forge a message to the supervisor", "descriptors", 0);

static enum outcome run_f95_terminal(struct attempt* attempt) {
  int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
  if (fd >= 0) return worked(attempt, "the caller's terminal");
  for (fd = 0; fd <= 2; ++fd) {
    if (isatty(fd)) return worked(attempt, "the caller's terminal");
  }
  errno = ENXIO;
  return refused(attempt, "no terminal");
}
ATTACK(f95_terminal, "F95b", "terminal", "reach the caller's terminal", "descriptors, supervisor", 0);
