// Guests that do not end with their run. Those that leave processes behind are judged by what still lives; the others
// by whether they are still there to say so when their time is long over.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "knock.h"

enum { kSeconds = 4 };  // after which all of it ends by itself

static void ignore_all(void) {
  for (int number = 1; number < 65; ++number) {
    if (number != SIGCHLD && number != SIGALRM) signal(number, SIG_IGN);
  }
}

static void linger(void) {
  alarm(kSeconds);
  for (;;) pause();
}

// Double fork and a session of its own, as a daemon does; the output stays open.
static void start_daemon(void) {
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    ignore_all();
    if (fork() == 0) linger();
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

static long over_ms(const struct attempt* attempt) {
  const long deadline = attempt->stage->deadline_ms > 0 ? attempt->stage->deadline_ms : 500;
  return 2 * deadline;  // Enough on a machine that is busy; the fence around a control waits for half as much again.
}

static void sleep_ms(long milliseconds) {
  struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  while (nanosleep(&left, &left) != 0) {
  }
}

static enum outcome run_d51_daemon(struct attempt* attempt) {
  start_daemon();
  sleep_ms(20);
  return refused(attempt, "left a daemon");
}
ATTACK(d51_daemon, "D51a", "daemon", "leave a daemon behind when the command ends", "supervisor, pid namespace",
       LEAVES_PROCESSES);

static enum outcome run_d51_daemon_deadline(struct attempt* attempt) {
  for (int i = 0; i < 4; ++i) start_daemon();
  ignore_all();
  sleep_ms(over_ms(attempt) * 2);
  return refused(attempt, "nobody ended it");
}
ATTACK(d51_daemon_deadline, "D51b", "daemons-at-deadline", "have daemons outlive the deadline",
       "wall limit, supervisor, pid namespace", LEAVES_PROCESSES | ENDED_BY_GUARD);

// A chain that grows at its tail: who kills a process at a time never comes to its end.
static enum outcome run_d51_chain(struct attempt* attempt) {
  for (int i = 0; i < 3; ++i) {
    if (fork() != 0) continue;
    ignore_all();
    alarm(kSeconds);
    for (int made = 0; made < 25; ++made) {
      setsid();
      const pid_t child = fork();
      if (child > 0) {
        sleep_ms(3);  // long enough to see the next one live
        _exit(0);
      }
      if (child < 0) sleep_ms(1);
      alarm(kSeconds);
      sleep_ms(2);
    }
    linger();
  }
  sleep_ms(50);
  return refused(attempt, "left chains of processes");
}
ATTACK(d51_chain, "D51c", "growing-chain", "outrun its killer: each process starts the next and ends",
       "supervisor, pid namespace", LEAVES_PROCESSES);

static enum outcome run_d52_ignore(struct attempt* attempt) {
  ignore_all();
  const pid_t supervisor = fork();
  if (supervisor == 0) {  // as an ordinary one would do it
    alarm(kSeconds);
    sleep_ms(50);
    kill(getppid(), SIGTERM);
    kill(getppid(), SIGINT);
    kill(getppid(), SIGHUP);
    _exit(0);
  }
  sleep_ms(over_ms(attempt));
  return worked(attempt, "still there after SIGTERM and its deadline");
}
ATTACK(d52_ignore, "D52", "ignore-signals", "ignore every signal and run on past the deadline", "wall limit",
       ENDED_BY_GUARD);

static enum outcome run_d53_stopped(struct attempt* attempt) {
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      setsid();
      linger();
    }
    kill(child, SIGSTOP);
  }
  sleep_ms(20);
  return refused(attempt, "left stopped processes");
}
ATTACK(d53_stopped, "D53a", "stopped", "leave stopped processes behind, which take no signal",
       "supervisor, pid namespace", LEAVES_PROCESSES);

static enum outcome run_d53_stopped_command(struct attempt* attempt) {
  const pid_t waker = fork();
  if (waker == 0) {
    alarm(kSeconds);
    sleep_ms(over_ms(attempt));
    kill(getppid(), SIGCONT);
    _exit(0);
  }
  raise(SIGSTOP);
  return worked(attempt, "woke up after its deadline");
}
ATTACK(d53_stopped_command, "D53b", "stopped-command", "be stopped when the deadline comes, and wake up later",
       "wall limit", ENDED_BY_GUARD);

// The command ends; a child keeps the output open, and who waits for the end of that waits for the child.
static enum outcome run_d54_hold_output(struct attempt* attempt) {
  if (fork() == 0) {
    ignore_all();
    linger();
  }
  sleep_ms(20);
  return refused(attempt, "the command ended, its child holds the output");
}
ATTACK(d54_hold_output, "D54", "hold-output", "keep the output open after the command has ended",
       "supervisor, pid namespace", LEAVES_PROCESSES);

static enum outcome run_d65_unread_input(struct attempt* attempt) {
  sleep_ms(over_ms(attempt));
  return worked(attempt, "sat on its input past the deadline");
}
ATTACK(d65_unread_input, "D65", "unread-input", "never read its input, so that who writes it waits", "wall limit",
       ENDED_BY_GUARD);

// At the very moment of the deadline the command ends by itself, while a child wants to live on.
static enum outcome run_d68_race_deadline(struct attempt* attempt) {
  const long deadline = attempt->stage->deadline_ms > 0 ? attempt->stage->deadline_ms : 500;
  start_daemon();
  // A little earlier, for the time that it took to start.
  if (deadline > 12) sleep_ms(deadline - 12);
  return refused(attempt, "ended in the moment of its deadline");
}
ATTACK(d68_race_deadline, "D68", "race-deadline", "end in the moment of the deadline, and leave a child",
       "supervisor, wall limit, pid namespace", LEAVES_PROCESSES | ENDED_BY_GUARD);
