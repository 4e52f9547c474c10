// Tries to outlive its run in one of several ways, and writes a heartbeat (monotonic nanoseconds) into a file, so that
// the host sees when the last of it died. The first number in the file is the start.
//
//   outlive WAY FILE      WAY: plain, sigterm, daemon, stopped, many, exit
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void beat(int fd) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  char line[32];
  const int length = snprintf(line, sizeof line, "%lld\n", (long long)now.tv_sec * 1000000000LL + now.tv_nsec);
  if (write(fd, line, (size_t)length) != length) _exit(1);
}

static void beat_on(int fd) {
  for (int i = 0; i < 60000; ++i) {
    beat(fd);
    usleep(1000);
  }
  _exit(0);
}

// Double fork and setsid, as a daemon does; keeps the output open.
static void start_daemon(int fd) {
  if (fork() != 0) return;
  setsid();
  if (fork() != 0) _exit(0);
  beat_on(fd);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* way = argv[1];
  const int fd = open(argv[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return 3;
  beat(fd);
  if (strcmp(way, "plain") != 0) {
    for (int number = 1; number < 65; ++number) {
      if (number != SIGCHLD) signal(number, SIG_IGN);
    }
  }
  if (strcmp(way, "daemon") == 0 || strcmp(way, "exit") == 0) start_daemon(fd);
  if (strcmp(way, "exit") == 0) {
    usleep(50000);
    puts("the command ends, its daemon does not");
    return 7;
  }
  if (strcmp(way, "many") == 0) {
    for (int i = 0; i < 20; ++i) start_daemon(fd);
  }
  if (strcmp(way, "stopped") == 0) {
    for (int i = 0; i < 5; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        setsid();
        beat_on(fd);
      }
      usleep(2000);
      kill(child, SIGSTOP);
    }
    raise(SIGSTOP);
  }
  beat_on(fd);
}
