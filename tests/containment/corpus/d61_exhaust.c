// Kernel objects until there are no more: those that a process holds, and those that all processes of a user share.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "knock.h"

static void raise_limit(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;  // whatever it may
  setrlimit(RLIMIT_NOFILE, &limit);
}

static int take_file(void) { return dup(0); }
static int take_pipe(void) {
  int ends[2];
  return pipe2(ends, O_CLOEXEC);
}
static int take_inotify(void) { return inotify_init1(IN_CLOEXEC); }
static int take_epoll(void) { return epoll_create1(EPOLL_CLOEXEC); }
static int take_event(void) { return eventfd(0, EFD_CLOEXEC); }
static int take_socket(void) {
  int ends[2];
  return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
}

static enum outcome exhaust(struct attempt* attempt, int (*take)(void), const char* what) {
  raise_limit();
  const long limit = attempt->stage->open_files > 0 ? attempt->stage->open_files : 64;
  long got = 0;
  while (got < limit * 3 / 2 && take() >= 0) ++got;
  if (got < limit * 3 / 2) return refused(attempt, what);
  char text[64];
  snprintf(text, sizeof text, "%ld %s", got, what);
  return worked(attempt, text);
}

#define EXHAUST(identifier, id, name, tries, take, what)                                                 \
  static enum outcome run_##identifier(struct attempt* attempt) { return exhaust(attempt, take, what); } \
  ATTACK(identifier, id, name, tries, "open files", 0)

EXHAUST(d61_files, "D61a", "open-files", "open more files than allowed", take_file, "descriptors");
EXHAUST(d61_pipes, "D61b", "pipes", "make more pipes than allowed", take_pipe, "pipes");
EXHAUST(d61_inotify, "D61c", "inotify", "make more inotify instances than allowed", take_inotify, "inotify instances");
EXHAUST(d61_epoll, "D61d", "epoll", "make more epoll instances than allowed", take_epoll, "epoll instances");
EXHAUST(d61_eventfd, "D61e", "eventfd", "make more event counters than allowed", take_event, "event counters");
EXHAUST(d61_sockets, "D61f", "sockets", "make more socket pairs than allowed", take_socket, "socket pairs");
