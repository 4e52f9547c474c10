// CPU time beyond the limit: in threads, in processes that come and go. Without the short deadline of other attacks.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "knock.h"

static long wanted_ms(const struct attempt* attempt) {
  const long limit = attempt->stage->cpu_ms > 0 ? attempt->stage->cpu_ms : 400;
  return limit + limit / 2;
}

static void burn(clockid_t clock, long milliseconds) {
  struct timespec used;
  do {
    for (volatile int i = 0; i < 20000; ++i) {
    }
    clock_gettime(clock, &used);
  } while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < milliseconds);
}

static enum outcome reached(struct attempt* attempt) {
  char text[64];
  snprintf(text, sizeof text, "%ld ms of CPU time", wanted_ms(attempt));
  return worked(attempt, text);
}

static void* burn_thread(void* milliseconds) {
  burn(CLOCK_THREAD_CPUTIME_ID, *(const long*)milliseconds);
  return NULL;
}

static enum outcome run_d62_threads(struct attempt* attempt) {
  alarm(9);
  const long share = wanted_ms(attempt) / 8 + 1;
  pthread_t threads[8];
  for (int i = 0; i < 8; ++i) {
    if (pthread_create(&threads[i], NULL, burn_thread, (void*)&share) != 0) return refused(attempt, "thread");
  }
  for (int i = 0; i < 8; ++i) pthread_join(threads[i], NULL);
  return reached(attempt);
}
ATTACK(d62_threads, "D62a", "cpu-of-threads", "use more CPU time than allowed, in eight threads", "cpu_time limit",
       ENDED_BY_GUARD | NEEDS_QUIET);

static enum outcome run_d62_children(struct attempt* attempt) {
  alarm(9);
  for (long used = 0; used < wanted_ms(attempt); used += 10) {
    const pid_t child = fork();
    if (child == 0) {
      burn(CLOCK_PROCESS_CPUTIME_ID, 10);
      _exit(0);
    }
    if (child < 0) return refused(attempt, "fork");
    waitpid(child, NULL, 0);
  }
  return reached(attempt);
}
ATTACK(d62_children, "D62b", "cpu-of-children", "use it in processes that live for 10 ms", "cpu_time limit",
       ENDED_BY_GUARD | NEEDS_QUIET);
