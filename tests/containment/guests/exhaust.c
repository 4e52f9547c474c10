// Takes as many of one kind of kernel object as it can get, at most 20,000, and says how many: "got N errno E".
//
//   exhaust WHAT       WHAT: fds, pipes, inotify, epoll, eventfd, sockets, timers, locks
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int take(const char* what) {
  int pair[2];
  timer_t timer;
  struct sigevent none = {.sigev_notify = SIGEV_NONE};
  if (strcmp(what, "pipes") == 0) {
    if (pipe2(pair, O_CLOEXEC) != 0) return -1;
    fcntl(pair[0], F_SETPIPE_SZ, 1 << 20);  // as large as it may be
    return 0;
  }
  if (strcmp(what, "inotify") == 0) return inotify_init1(IN_CLOEXEC);
  if (strcmp(what, "epoll") == 0) return epoll_create1(EPOLL_CLOEXEC);
  if (strcmp(what, "eventfd") == 0) return eventfd(0, EFD_CLOEXEC);
  if (strcmp(what, "sockets") == 0) return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
  if (strcmp(what, "timers") == 0) return timer_create(CLOCK_MONOTONIC, &none, &timer);
  return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;  // whatever it may raise it to
  setrlimit(RLIMIT_NOFILE, &limit);
  long got = 0;
  while (got < 20000 && take(argv[1]) >= 0) ++got;
  printf("got %ld errno %d\n", got, got == 20000 ? 0 : errno);
  return 0;
}
