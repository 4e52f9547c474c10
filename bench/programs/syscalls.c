// A loop of cheap system calls, timed from inside: what a filter or another kernel in between costs each of them.
// Prints the nanoseconds of the whole loop.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 20000;
  struct timespec began, ended;
  char byte[64];
  const int zero = open("/dev/zero", O_RDONLY);
  if (zero < 0) return perror("/dev/zero"), 1;
  clock_gettime(CLOCK_MONOTONIC, &began);
  for (int i = 0; i < rounds; ++i) {
    for (int k = 0; k < 4; ++k) syscall(SYS_getpid);  // the C library must not answer from memory
    const int fd = openat(AT_FDCWD, "/usr/bin/env", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return perror("/usr/bin/env"), 1;
    close(fd);
    for (int k = 0; k < 4; ++k) {
      if (read(zero, byte, sizeof byte) != sizeof byte) return perror("read"), 1;
    }
  }
  clock_gettime(CLOCK_MONOTONIC, &ended);
  printf("%lld\n", (ended.tv_sec - began.tv_sec) * 1000000000LL + ended.tv_nsec - began.tv_nsec);
  return 0;
}
