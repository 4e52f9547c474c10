#include "jail/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "jail/context.h"

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

// Removes the entries of `directory`; returns a descriptor of a subdirectory that is not empty yet, -1 when all are
// gone, -2 when one can't be removed.
int EmptyDirectory(int directory) {
  alignas(struct dirent64) char buffer[8192];
  for (;;) {
    if (lseek(directory, 0, SEEK_SET) != 0) return -2;
    const long length = getdents64(directory, buffer, sizeof buffer);
    if (length < 0) return -2;
    bool removed = false;
    for (long at = 0; at < length;) {
      const auto* entry = reinterpret_cast<const struct dirent64*>(buffer + at);
      at += entry->d_reclen;
      if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
      if (unlinkat(directory, entry->d_name, 0) == 0 || unlinkat(directory, entry->d_name, AT_REMOVEDIR) == 0) {
        removed = true;
        continue;
      }
      if (errno != ENOTEMPTY && errno != EEXIST) return -2;
      // A guest may have locked itself, and so its owner, out of its own directory.
      if (fchmodat(directory, entry->d_name, 0700, 0) != 0) return -2;
      const int below = openat(directory, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      return below < 0 ? -2 : below;
    }
    if (!removed) return -1;
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

void KillChildren(Kin kin) {
  for (int round = 0; round < kRounds; ++round) {
    if (kin == Kin::kAllInScope) {
      kill(-1, SIGKILL);
    } else {
      KillListed(AT_FDCWD, "/proc/thread-self/children");
    }
    pid_t ended = 0;
    while ((ended = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (ended < 0 && errno == ECHILD) return;
    // Short first: killed children leave at once, and their orphans are the next round's.
    if (round > 50) Pause();
  }
}

int RemoveTree(const char* path) {
  int directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (directory < 0 && errno == EACCES && fchmodat(AT_FDCWD, path, 0700, 0) == 0) {
    directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  }
  // No such directory: gone, or never made, as where TMPDIR is a file. What stands in its place is not ours to remove.
  if (directory < 0) return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -1;
  // One descriptor at a time, up again by "..": a tree may be deeper than there are descriptors or stack. Nobody else
  // is left who could move directories meanwhile.
  int depth = 0;
  for (;;) {
    const int below = EmptyDirectory(directory);
    if (below == -2 || (below == -1 && depth == 0)) {
      close(directory);
      return below == -2 ? -1 : rmdir(path);
    }
    const int next = below >= 0 ? below : openat(directory, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close(directory);
    if (next < 0) return -1;
    depth += below >= 0 ? 1 : -1;
    directory = next;
  }
}

void RemoveLeftovers(const Leftovers& leftovers) {
  for (int round = 0; round < kRounds; ++round) {
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
    Pause();
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
  // The owner never writes: the end of the pipe is the only word, and only that word ends a run.
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
  RemoveLeftovers(leftovers);
  _exit(0);
}

}  // namespace belljar::jail
