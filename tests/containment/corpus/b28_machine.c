// Calls on the machine itself. Outside, as root, each must change nothing: wrong magic numbers, pointers to nowhere,
// values that are turned down behind the permission, or exactly what is set already.
#define _GNU_SOURCE
#include <string.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>

#include "knock.h"

#define POWER "seccomp, capabilities"

KNOCK(b28_kexec_load, "B28a", "kexec-load", "load another kernel", POWER, 0, SYS_kexec_load, 0, 0x7fffffff, 0, 0xffff);
KNOCK(b28_kexec_file_load, "B28b", "kexec-file-load", "load another kernel from a file", POWER, 0, SYS_kexec_file_load,
      -1, -1, 0, 0, 0x7fff0000);
KNOCK(b28_init_module, "B28c", "init-module", "load a kernel module from memory", POWER, 0, SYS_init_module, NOWHERE, 0,
      NOWHERE);
KNOCK(b28_finit_module, "B28d", "finit-module", "load a kernel module from a file", POWER, 0, SYS_finit_module, -1,
      NOWHERE, 0x7fff0000);
KNOCK(b28_delete_module, "B28e", "delete-module", "unload a kernel module", POWER, 0, SYS_delete_module, NOWHERE, 0);
KNOCK(b28_reboot, "B28f", "reboot", "reboot, with a wrong magic number", POWER, 0, SYS_reboot, 0, 0, 0, 0);
KNOCK(b28_swapon, "B28g", "swapon", "swap to a file of its own", POWER, 0, SYS_swapon, NOWHERE, 0);
KNOCK(b28_swapoff, "B28h", "swapoff", "switch the host's swap off", POWER, 0, SYS_swapoff, NOWHERE);
KNOCK(b28_acct, "B28i", "acct", "have the kernel write accounts of processes", POWER, 0, SYS_acct, NOWHERE);
KNOCK(b28_quotactl, "B28j", "quotactl", "ask for disk quotas of the host", "seccomp", 0, SYS_quotactl,
      0x800005 << 8 /* Q_GETINFO for users */, NOWHERE, 0, NOWHERE);
KNOCK(b28_iopl, "B28k", "iopl", "all hardware ports for this process", POWER, 0, SYS_iopl, 3);
KNOCK(b28_ioperm, "B28l", "ioperm", "one hardware port for this process", POWER, 0, SYS_ioperm, 0x80, 1, 1);
KNOCK(b28_sethostname, "B28m", "sethostname", "change the name of the host", POWER, 0, SYS_sethostname, NOWHERE, 4096);
KNOCK(b28_setdomainname, "B28n", "setdomainname", "change the domain of the host", POWER, 0, SYS_setdomainname, NOWHERE,
      4096);

static enum outcome run_b28_syslog(struct attempt* attempt) {
  static char log[4096];
  const long got = syscall(SYS_syslog, 3 /* read all, leave it */, log, sizeof log);
  if (got < 0) return refused(attempt, "syslog");
  return worked(attempt, "the kernel's messages");
}
ATTACK(b28_syslog, "B28o", "syslog", "read the host's kernel log", POWER, 0);

static enum outcome run_b28_settimeofday(struct attempt* attempt) {
  const struct {
    int minutes_west, dst;
  } zone = {10000, 0};  // beyond any, judged after the permission
  if (syscall(SYS_settimeofday, NULL, &zone) < 0 && is_denied(errno)) return refused(attempt, "settimeofday");
  return worked(attempt, "the kernel judges the time zone");
}
ATTACK(b28_settimeofday, "B28p", "settimeofday", "set the host's time zone", POWER, 0);

static enum outcome run_b28_clock_settime(struct attempt* attempt) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (syscall(SYS_clock_settime, CLOCK_REALTIME, &now) != 0) return refused(attempt, "clock_settime");
  return worked(attempt, "the clock set, to what it was");
}
ATTACK(b28_clock_settime, "B28q", "clock-settime", "set the host's clock", POWER, 0);

static enum outcome run_b28_clock_adjtime(struct attempt* attempt) {
  struct timex adjust;
  memset(&adjust, 0, sizeof adjust);
  adjust.modes = ADJ_TICK;
  adjust.tick = 1;  // out of range, judged after the permission
  if (syscall(SYS_clock_adjtime, CLOCK_REALTIME, &adjust) < 0 && is_denied(errno))
    return refused(attempt, "clock_adjtime");
  return worked(attempt, "the kernel judges the rate of the clock");
}
ATTACK(b28_clock_adjtime, "B28r", "clock-adjtime", "change how fast the host's clock runs", POWER, 0);

// In a session without a terminal there is nothing to hang up.
static enum outcome run_b28_vhangup(struct attempt* attempt) {
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    _exit(syscall(SYS_vhangup) != 0 ? errno : 0);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return refused(attempt, "fork");
  errno = WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
  return errno != 0 ? refused(attempt, "vhangup") : worked(attempt, "a terminal hung up");
}
ATTACK(b28_vhangup, "B28s", "vhangup", "hang up the caller's terminal", POWER, 0);
