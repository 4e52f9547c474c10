// Chains of processes that grow at their tails faster than they are killed at their heads: whoever kills a process at a
// time, as its parent or by a list of pids, never catches the last one. Each process ignores what it can and stays; the
// next one is its child, in a session of its own.
//
//   chain TAILS SECONDS WAY [WORD]    WAY: exit (the command ends meanwhile), stay, burst (fast from the start)
//
// Slow until the command is about to end, so that no limit ends it earlier. All end by themselves after SECONDS, and
// after kMost forks: a sandbox that fails must not take the host with it.
#define _GNU_SOURCE
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { kMost = 20000 };

struct shared {
  atomic_int forks;
  atomic_int fast;
};

static long left(const struct timespec* end) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (long)(end->tv_sec - now.tv_sec);
}

static void grow(struct shared* shared, const struct timespec* end) {
  for (int number = 1; number < 65; ++number) {
    if (number != SIGALRM && number != SIGCHLD) signal(number, SIG_IGN);
  }
  for (;;) {
    if (left(end) <= 0) _exit(0);
    alarm((unsigned)left(end) + 1);
    setsid();
    if (!shared->fast) usleep(10000);
    const pid_t child = shared->forks++ < kMost ? fork() : -1;
    if (child == 0) continue;
    if (child > 0) {
      for (;;) pause();
    }
    usleep(200);
  }
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  // Of a file: not every sandbox gives shared memory without a name.
  char name[256];
  snprintf(name, sizeof name, "%s/chain-XXXXXX", getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
  const int fd = mkstemp(name);
  if (fd < 0 || unlink(name) != 0 || ftruncate(fd, sizeof(struct shared)) != 0) return 3;
  struct shared* shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (shared == MAP_FAILED) return 3;
  struct timespec end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += atoi(argv[2]);
  shared->fast = strcmp(argv[3], "burst") == 0;
  for (int i = 0; i < atoi(argv[1]); ++i) {
    if (fork() == 0) grow(shared, &end);
  }
  usleep(100000);
  puts("launched");
  fflush(stdout);
  if (strcmp(argv[3], "exit") == 0) {
    shared->fast = 1;
    usleep(5000);
    return 0;
  }
  usleep(350000);
  shared->fast = 1;
  for (;;) pause();
}
