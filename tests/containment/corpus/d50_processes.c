// Too many processes: more than the limit, each bounded so that a host without a limit survives it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "knock.h"

static long beyond(const struct attempt* attempt) {
  const long limit = attempt->stage->processes > 0 ? attempt->stage->processes : 40;
  return limit + limit / 2 + 2;
}

// Whoever watches gets a moment to see what was tried before this ends by itself.
static enum outcome stopped(struct attempt* attempt, const char* by) {
  const int error = errno;
  usleep(200000);
  errno = error;
  return refused(attempt, by);
}

static enum outcome reached(struct attempt* attempt, long count, const char* what) {
  usleep(100000);
  char text[80];
  snprintf(text, sizeof text, "%ld %s at once", count, what);
  return worked(attempt, text);
}

static void stay(void) {
  alarm(5);
  for (;;) pause();
}

static enum outcome run_d50_fork_bomb(struct attempt* attempt) {
  const long wanted = beyond(attempt);
  pid_t children[4096];
  long made = 0;
  while (made < wanted && made < 4096) {
    children[made] = fork();
    if (children[made] == 0) stay();
    if (children[made] < 0) break;
    ++made;
  }
  const enum outcome outcome = made < wanted ? stopped(attempt, "fork") : reached(attempt, made, "processes");
  while (made > 0) kill(children[--made], SIGKILL);
  while (waitpid(-1, NULL, 0) > 0) {
  }
  return outcome;
}
ATTACK(d50_fork_bomb, "D50a", "fork-bomb", "have more processes than allowed", "process limit", ENDED_BY_GUARD);

struct churn {
  atomic_long alive, most, forks;
};

// A process that ends as soon as two others have taken its place is gone before anybody who counts has looked at it.
static void churn_on(struct churn* churn, long wanted) {
  for (;;) {
    const long now = atomic_fetch_add(&churn->alive, 1) + 1;
    if (now > churn->most) churn->most = now;
    usleep(3000);
    for (int i = 0; i < 2; ++i) {
      if (churn->alive > wanted || atomic_fetch_add(&churn->forks, 1) > 40 * wanted) break;
      if (fork() == 0) goto next;
    }
    usleep(20000);
    atomic_fetch_sub(&churn->alive, 1);
    _exit(0);
  next:;
  }
}

static enum outcome run_d50_churn(struct attempt* attempt) {
  const long wanted = beyond(attempt);
  struct churn* churn = shared_memory(attempt->stage, sizeof *churn);
  if (churn == NULL) return refused(attempt, "a file that it may write");
  signal(SIGCHLD, SIG_IGN);
  if (fork() == 0) {
    alarm(2);
    churn_on(churn, wanted);
  }
  for (int i = 0; i < 100 && churn->most < wanted; ++i) usleep(5000);
  const long most = churn->most;
  atomic_store(&churn->forks, 1L << 30);  // no more of them
  errno = EAGAIN;
  return most < wanted ? stopped(attempt, "fork while others end") : reached(attempt, most, "short-lived processes");
}
ATTACK(d50_churn, "D50b", "fork-churn", "the same with processes that live for milliseconds", "process limit?",
       ENDED_BY_GUARD);

static void* wait_for_end(void* unused) {
  usleep(600000);
  return unused;
}

static enum outcome run_d50_threads(struct attempt* attempt) {
  const long wanted = beyond(attempt);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  long made = 0;
  for (; made < wanted; ++made) {
    pthread_t thread;
    const int error = pthread_create(&thread, &small, wait_for_end, NULL);
    if (error != 0) {
      errno = error;
      return stopped(attempt, "thread");
    }
  }
  return reached(attempt, made, "threads");
}
ATTACK(d50_threads, "D50c", "thread-bomb", "have more threads than processes are allowed", "process limit",
       ENDED_BY_GUARD);

static enum outcome run_d63_zombies(struct attempt* attempt) {
  const long wanted = beyond(attempt);
  for (long made = 0; made < wanted; ++made) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    if (child < 0) return stopped(attempt, "fork beside zombies");
    usleep(200);
  }
  return reached(attempt, wanted, "dead processes that nobody reaps");
}
ATTACK(d63_zombies, "D63a", "zombies", "fill the process table with the dead", "process limit", ENDED_BY_GUARD);

// Orphans that end are somebody else's to reap. Where that somebody doesn't, they add up to the limit, and a harmless
// program is ended for what it does not have; so here the sandbox holds if all of them can be made.
static enum outcome run_d63_orphans(struct attempt* attempt) {
  const long wanted = beyond(attempt);
  int ends[2];
  if (pipe2(ends, O_NONBLOCK) != 0) return refused(attempt, "pipe");
  for (long made = 0; made < wanted; ++made) {
    const pid_t child = fork();
    if (child == 0) {
      if (fork() == 0) {
        const pid_t self = getpid();
        usleep(500);
        if (write(ends[1], &self, sizeof self) < 0) _exit(1);
      }
      _exit(0);
    }
    if (child > 0) waitpid(child, NULL, 0);
    usleep(2000);
  }
  usleep(100000);
  long left = 0;
  pid_t orphan = 0;
  while (read(ends[0], &orphan, sizeof orphan) == sizeof orphan) left += kill(orphan, 0) == 0;
  char text[80];
  snprintf(text, sizeof text, "%ld dead orphans stay", left);
  errno = ESRCH;
  return left > wanted / 2 ? worked(attempt, text) : refused(attempt, "orphans are reaped");
}
ATTACK(d63_orphans, "D63b", "orphans", "leave dead orphans that nobody reaps", "supervisor", 0);
