// Kernel objects that are counted per user or per host, not per process. A guest that runs as its caller takes them
// from its caller: no program of that user gets one any more.
#define _GNU_SOURCE
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "knock.h"

enum { kProcesses = 4, kInstances = 96, kSignals = 8192 };

static int take_inotify(void) { return inotify_init1(IN_CLOEXEC); }
static int take_terminal(void) { return open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC); }

// In several processes, because each may only have so many descriptors.
static int take_in_processes(const struct stage* stage, int (*take)(void)) {
  pid_t children[kProcesses];
  int* taken = shared_memory(stage, sizeof(int[kProcesses]));
  if (taken == NULL) return -1;
  int total = 0;
  for (int i = 0; i < kProcesses; ++i) {
    children[i] = fork();
    if (children[i] == 0) {
      alarm(5);
      while (taken[i] < kInstances / 2 && take() >= 0) ++taken[i];
      _exit(raise(SIGSTOP));
    }
    int status = 0;
    if (children[i] > 0 && waitpid(children[i], &status, WUNTRACED) > 0) total += taken[i];
  }
  for (int i = 0; i < kProcesses; ++i) {
    if (children[i] > 0) kill(children[i], SIGKILL);
  }
  while (waitpid(-1, NULL, 0) > 0) {
  }
  errno = EMFILE;
  return total;
}

static enum outcome run_d61_user_inotify(struct attempt* attempt) {
  // A uid that belongs to this run alone, as root's guests have, takes them from nobody.
  if (geteuid() >= 1900000000U) return errno = EPERM, refused(attempt, "a user that nobody else is");
  const int total = take_in_processes(attempt->stage, take_inotify);
  if (total < kInstances) return refused(attempt, "inotify instances of its user");
  char text[80];
  snprintf(text, sizeof text, "%d of its user's inotify instances, of which 128 are usual", total);
  return worked(attempt, text);
}
ATTACK(d61_user_inotify, "D61g", "inotify-of-user", "take all inotify instances that its user may have",
       "inotify limits", 0);

// 3,072 for all sandboxes and containers of a host together.
static enum outcome run_d61_terminals(struct attempt* attempt) {
  const int total = take_in_processes(attempt->stage, take_terminal);
  if (total < kInstances) return refused(attempt, "terminals");
  char text[80];
  snprintf(text, sizeof text, "%d of the terminals that all sandboxes share", total);
  return worked(attempt, text);
}
ATTACK(d61_terminals, "D61i", "terminals", "take the terminals that all sandboxes of the host share",
       "root filesystem, landlock", 0);

// One more than the sandbox's user namespace may have; each needs a file of its own.
enum { kWatches = 8193 };
static int watcher;
static int watches;
static int watch_file(const char* path, const struct stat* status, int kind, struct FTW* place) {
  (void)status, (void)kind, (void)place;
  const int watch = inotify_add_watch(watcher, path, IN_DELETE_SELF);
  if (watch > watches) watches = watch;  // Numbered from 1, and one file by two names is one watch.
  return watches >= kWatches || (watch < 0 && errno == ENOSPC);
}
static enum outcome run_d61_user_watches(struct attempt* attempt) {
  if (geteuid() >= 1900000000U) return errno = EPERM, refused(attempt, "a user that nobody else is");
  watcher = inotify_init1(IN_CLOEXEC);
  if (watcher < 0) return refused(attempt, "inotify");
  watches = 0;
  nftw("/usr", watch_file, 16, FTW_PHYS);
  const int error = errno;
  close(watcher);
  errno = error;
  if (watches < kWatches) return refused(attempt, "inotify watches of its user");
  return worked(attempt, "8,193 of its user's inotify watches");
}
ATTACK(d61_user_watches, "D61j", "watches-of-user", "take the inotify watches that its user may have", "inotify limits",
       0);

static enum outcome run_d61_user_signals(struct attempt* attempt) {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGRTMAX);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  const union sigval value = {0};
  int queued = 0;
  while (queued < kSignals && sigqueue(getpid(), SIGRTMAX, value) == 0) ++queued;
  if (queued < kSignals) return refused(attempt, "queued signals of its user");
  return worked(attempt, "8,192 queued signals and no end in sight");
}
ATTACK(d61_user_signals, "D61h", "signals-of-user", "queue as many signals as its user may have", "supervisor", 0);
