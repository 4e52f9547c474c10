// Input pushed into a terminal, which its reader takes for typed. On a terminal of its own, and what is typed goes
// nowhere; the ioctl is the same as on the caller's.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

#include "knock.h"

// In a child, which needs a session of its own: to others only root may do this. The answer is its exit status.
static int on_terminal(unsigned long request, const void* argument) {
  const int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  int number = 0;
  int unlock = 0;
  if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) != 0 || ioctl(master, TIOCGPTN, &number) != 0) return 253;
  char name[32];
  snprintf(name, sizeof name, "/dev/pts/%d", number);
  setsid();
  const int slave = open(name, O_RDWR | O_CLOEXEC);
  if (slave < 0) return 253;
  ioctl(slave, TIOCSCTTY, 0);
  errno = 0;
  return syscall(SYS_ioctl, slave, request, argument) < 0 ? errno : 0;
}

static enum outcome attempt_on_terminal(struct attempt* attempt, unsigned long request, const void* argument) {
  const pid_t child = fork();
  if (child < 0) return refused(attempt, "fork");
  if (child == 0) _exit(on_terminal(request, argument));
  int status = 0;
  waitpid(child, &status, 0);
  errno = WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
  // A sandbox without terminals has none to attack; that is containment as well.
  if (errno == 253) {
    errno = ENXIO;
    return attempt->stage->inside ? refused(attempt, "no terminal to be had")
                                  : unable(attempt, "no terminal to be had");
  }
  if (errno == ENOTTY && !attempt->stage->inside) return unable(attempt, "only virtual consoles know it");
  return errno != 0 ? refused(attempt, "ioctl") : worked(attempt, "the terminal took it");
}

static enum outcome run_b37_tiocsti(struct attempt* attempt) { return attempt_on_terminal(attempt, TIOCSTI, "x"); }
ATTACK(b37_tiocsti, "B37a", "tiocsti", "type into the caller's terminal", "seccomp", 0);

static enum outcome run_b37_tiocsti_high(struct attempt* attempt) {
  return attempt_on_terminal(attempt, TIOCSTI | (1UL << 32), "x");
}
ATTACK(b37_tiocsti_high, "B37b", "tiocsti-high-bits", "the same with high bits in the request", "seccomp", 0);

static enum outcome run_b38_tioclinux(struct attempt* attempt) {
  static const char request[] = {12};  // which console is in front: changes nothing
  return attempt_on_terminal(attempt, TIOCLINUX, request);
}
ATTACK(b38_tioclinux, "B38a", "tioclinux", "paste a selection into a console", "seccomp, root filesystem", 0);

static enum outcome run_b38_line_discipline(struct attempt* attempt) {
  static const int plain = 0;  // N_TTY, which it has already
  return attempt_on_terminal(attempt, TIOCSETD, &plain);
}
ATTACK(b38_line_discipline, "B38b", "line-discipline", "load another protocol onto a terminal", "seccomp", 0);
