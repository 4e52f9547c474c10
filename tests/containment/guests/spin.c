// Burns CPU time in THREADS processes that share memory, or, with "fork", in as many processes that end and are
// replaced: time of children that are gone counts too.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void burn_for(long milliseconds) {
  struct timespec used;
  do {
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  } while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < milliseconds);
}

static int burn(void* unused) {
  (void)unused;
  for (volatile unsigned long i = 0;; ++i) {
  }
  return 0;
}

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 4;
  if (argc > 2 && strcmp(argv[2], "fork") == 0) {
    for (;;) {
      if (fork() == 0) {
        burn_for(5);
        _exit(0);
      }
      wait(NULL);
    }
  }
  for (int i = 1; i < threads; ++i) {
    char* stack = malloc(65536);
    clone(burn, stack + 65536, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, NULL);
  }
  burn(NULL);
}
