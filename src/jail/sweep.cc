#include "jail/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "jail/context.h"
#include "jail/loopback.h"

namespace belljar::jail {
namespace {

constexpr int kRounds = 2500;  // of 2 ms: five seconds

void Pause() {
  const struct timespec two_ms = {0, 2'000'000};
  nanosleep(&two_ms, nullptr);
}

// Sends SIGKILL to every number in a file of white-space separated pids. True when there was any.
bool KillListed(int directory, const char* path) {
  const int fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[4096];
  bool any = false;
  int number = 0;
  ssize_t length = 0;
  while ((length = read(fd, text, sizeof text)) > 0) {
    for (ssize_t i = 0; i < length; ++i) {
      if (text[i] >= '0' && text[i] <= '9') {
        number = number * 10 + (text[i] - '0');
        continue;
      }
      if (number > 1 && kill(number, SIGKILL) == 0) any = true;
      number = 0;
    }
  }
  if (number > 1 && kill(number, SIGKILL) == 0) any = true;
  close(fd);
  return any;
}

// Gives it a name in `top` that nothing else has. `number` goes on from one to the next, so that names which a guest
// has taken on purpose cost once, not each time.
int MoveUp(int from, const char* name, int top, unsigned* number) {
  while (*number < 100'000'000) {
    char fresh[] = ".belljar-00000000";
    unsigned left = (*number)++;
    for (char* digit = fresh + sizeof fresh - 2; *digit != '-'; --digit, left /= 10) {
      *digit = static_cast<char>('0' + left % 10);
    }
    // An empty directory of that name is replaced: it had to go anyway.
    if (renameat(from, name, top, fresh) == 0) return 0;
    if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR) return -1;
  }
  errno = EEXIST;
  return -1;
}

int OpenDirectory(int directory, const char* name) {
  return openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// Removes all that is in `directory` but directories that are not empty: in the top itself the first of them is opened
// and returned, elsewhere they are moved up to it. -1: nothing is left here. -2: something can't be removed.
int Empty(int directory, int top, unsigned* number) {
  alignas(struct dirent64) char buffer[8192];
  for (;;) {
    if (lseek(directory, 0, SEEK_SET) != 0) return -2;
    const long length = getdents64(directory, buffer, sizeof buffer);
    if (length < 0) return -2;
    bool any = false;
    for (long at = 0; at < length;) {
      const auto* entry = reinterpret_cast<const struct dirent64*>(buffer + at);
      at += entry->d_reclen;
      const char* name = entry->d_name;
      if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
      any = true;
      if (unlinkat(directory, name, 0) == 0 || unlinkat(directory, name, AT_REMOVEDIR) == 0) continue;
      if (errno == ENOENT) continue;
      if (errno != ENOTEMPTY && errno != EEXIST) return -2;
      // A guest may have locked itself, and so its owner, out of its own directory.
      if (fchmodat(directory, name, 0700, AT_SYMLINK_NOFOLLOW) != 0 && errno != ENOENT) return -2;
      if (directory != top) {
        if (MoveUp(directory, name, top, number) != 0 && errno != ENOENT) return -2;
        continue;
      }
      const int below = OpenDirectory(directory, name);
      if (below >= 0) return below;
      if (errno != ENOENT) return -2;
    }
    if (!any) return -1;
  }
}

// The pid in a name like "belljar-1234-5f…", or 0.
int OwnerOf(const char* name) {
  static constexpr char kPrefix[] = "belljar-";
  if (strncmp(name, kPrefix, sizeof kPrefix - 1) != 0) return 0;
  int pid = 0;
  for (const char* digit = name + sizeof kPrefix - 1; *digit >= '0' && *digit <= '9' && pid < 100'000'000; ++digit) {
    pid = pid * 10 + (*digit - '0');
  }
  return pid;
}

// Removes what earlier runs left beside `path` because they were killed together with their janitor: empty cgroups
// whose owner is gone. An hour old at least: the owner may be in another pid namespace and only look gone.
void RemoveOrphans(const char* path) {
  char parent[512];
  const char* slash = strrchr(path, '/');
  if (slash == nullptr) return;
  const auto length = static_cast<size_t>(slash - path);
  memcpy(parent, path, length);
  parent[length] = '\0';
  const int directory = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  alignas(struct dirent64) char buffer[8192];
  long got = 0;
  while ((got = getdents64(directory, buffer, sizeof buffer)) > 0) {
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const struct dirent64*>(buffer + at);
      at += entry->d_reclen;
      const int owner = OwnerOf(entry->d_name);
      if (owner == 0 || kill(owner, 0) == 0 || errno != ESRCH) continue;
      struct stat status;
      if (fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
      struct timespec now = {};
      clock_gettime(CLOCK_REALTIME, &now);
      if (now.tv_sec - status.st_mtime < 3600) continue;
      unlinkat(directory, entry->d_name, AT_REMOVEDIR);
    }
  }
  close(directory);
}

}  // namespace

bool KillChildren(Kin kin) {
  int since = 0;  // That one has ended.
  for (int round = 0; round < kRounds && since < kRounds / 5; ++round, ++since) {
    if (kin == Kin::kAllInScope) {
      kill(-1, SIGKILL);
    } else {
      KillListed(AT_FDCWD, "/proc/thread-self/children");
    }
    pid_t ended = 0;
    while ((ended = waitpid(-1, nullptr, WNOHANG)) > 0) since = 0;
    if (ended < 0 && errno == ECHILD) return true;
    // Short first: killed children leave at once, and their orphans are the next round's.
    if (round > 50) Pause();
  }
  return false;
}

int RemoveTree(const char* path) {
  int top = OpenDirectory(AT_FDCWD, path);
  if (top < 0 && errno == EACCES && fchmodat(AT_FDCWD, path, 0700, AT_SYMLINK_NOFOLLOW) == 0) {
    top = OpenDirectory(AT_FDCWD, path);
  }
  // No such directory: gone, or never made, as where TMPDIR is a file. What stands in its place is not ours to remove.
  if (top < 0) return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -1;
  // SECURITY: never up by "..". Somebody who can write here may move a directory while it is emptied, and ".." then
  // leads to wherever that is: in the end to the root of the host. Instead what is deep is moved up, so that nothing is
  // ever more than one step below the top. It also takes two descriptors, however deep the tree is.
  unsigned number = 0;
  int below = 0;
  while ((below = Empty(top, top, &number)) >= 0) {
    const int rest = Empty(below, top, &number);
    close(below);
    if (rest == -2) break;
  }
  close(top);
  return below == -1 ? rmdir(path) : -1;
}

void RemoveLeftovers(const Leftovers& leftovers, Patience patience) {
  constexpr int kSecond = 500;
  const int rounds = patience == Patience::kLong ? 3600 : kRounds;
  for (int round = 0; round < rounds; ++round) {
    bool left = false;
    for (const auto& cgroup : leftovers.cgroups) {
      if (cgroup[0] == '\0') break;
      if (rmdir(cgroup) == 0 || errno == ENOENT) continue;
      left = true;
      const int directory = open(cgroup, O_PATH | O_DIRECTORY | O_CLOEXEC);
      if (directory < 0) continue;
      KillListed(directory, "cgroup.procs");
      close(directory);
    }
    if (leftovers.directory[0] != '\0' && RemoveTree(leftovers.directory) != 0) left = true;
    if (!left) return;
    for (int i = 0; i < (patience == Patience::kLong ? kSecond : 1); ++i) Pause();
  }
}

void Janitor(const Leftovers& leftovers, JanitorEnds ends) {
  setsid();  // Ctrl-C is for the run, not for its clean-up.
  if (ends.network_ready >= 0) {
    // First: init waits for it before long. Or nobody does any more, and that must not end the janitor.
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignore, nullptr);
    const int error = unshare(CLONE_NEWNET) == 0 && BringLoopbackUp() == 0 ? 0 : errno;
    (void)!write(ends.network_ready, &error, sizeof error);
    close(ends.network_ready);
  }
  prctl(PR_SET_NAME, "belljar-janitor", 0, 0, 0);
  // The end of the pipe is the word that ends a run.
  struct pollfd life = {ends.lifeline, POLLIN, 0};
  int ready = poll(&life, 1, 20);
  for (const auto& cgroup : leftovers.cgroups) {
    if (ready != 0 || cgroup[0] == '\0') break;  // Not in the way of a short run.
    RemoveOrphans(cgroup);
  }
  while (ready <= 0 || (life.revents & (POLLHUP | POLLERR)) == 0) {
    ready = poll(&life, 1, -1);
    if (ready < 0 && errno != EINTR) Pause();
  }
  // Also when its owner said good-bye: that came before the removal, so that waking up here overlaps with it.
  char byte = 0;
  RemoveLeftovers(leftovers, read(ends.lifeline, &byte, 1) == 1 ? Patience::kLong : Patience::kSome);
  _exit(0);
}

}  // namespace belljar::jail
