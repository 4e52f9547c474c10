// The fence around a control: `belljar-corpus fence ID key=value…` runs one attack where it may work and yet hurts
// nobody, and says on standard error how it ended:
//
//   fence survivors=N status=N timeout=0|1
//
// It keeps the host's pid, ipc and network namespaces, because reaching those is what many attacks are about. Mounts
// and the hostname are the fence's own where that can be had, the scratch directory is a small filesystem, and every
// process that the attack leaves behind is adopted and killed.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attack.h"
#include "corpus.h"

enum { kSeconds = 10, kSettleMs = 100, kMegabyte = 1 << 20 };

static void limit(int resource, rlim_t value) {
  const struct rlimit both = {value, value};
  setrlimit(resource, &both);
}

static void own_mounts(const struct stage* stage) {
  if (geteuid() != 0 || unshare(CLONE_NEWNS | CLONE_NEWUTS) != 0) return;
  if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) _exit(3);  // Or mounts would reach the host.
  if (stage->scratch == NULL) return;
  char options[96];
  snprintf(options, sizeof options, "size=%ld,nr_inodes=%ld,mode=1777", 4 * stage->disk, 4 * stage->files);
  if (mount("fence", stage->scratch, "tmpfs", 0, stage->disk > 0 ? options : "size=64m,mode=1777") != 0) _exit(3);
}

// Live children of this process: its own, and all orphans below it, which it adopts.
static int for_children(int number, pid_t except) {
  int count = 0;
  DIR* proc = opendir("/proc");
  if (proc == NULL) return -1;
  for (struct dirent* entry = readdir(proc); entry != NULL; entry = readdir(proc)) {
    const pid_t pid = atoi(entry->d_name);
    if (pid <= 0 || pid == except) continue;
    char path[64], text[256], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (slurp(path, text, sizeof text) <= 0) continue;
    int parent = 0;
    char* end = NULL;
    for (char* at = text; *at != '\0'; ++at) end = *at == ')' ? at : end;
    if (end == NULL || sscanf(end + 1, " %c %d", &state, &parent) != 2 || parent != getpid()) continue;
    if (state == 'Z' || state == 'X') continue;
    ++count;
    if (number != 0) kill(pid, number);
  }
  closedir(proc);
  return count;
}

static void kill_rest(void) {
  for (int round = 0; round < 400; ++round) {
    const int left = for_children(SIGKILL, 0);
    while (waitpid(-1, NULL, WNOHANG | __WALL) > 0) {
    }
    if (left == 0) return;
    poll(NULL, 0, 5);
  }
}

// What a careless caller leaves to its children: a controlling terminal and a socket.
static void leave_open(void) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  int ends[2];
  if (master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0) {
    setsid();
    const int terminal = open(ptsname(master), O_RDWR | O_CLOEXEC);  // Becomes the controlling one.
    if (terminal >= 0) ioctl(terminal, TIOCSCTTY, 0);
  }
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) _exit(3);
}

int run_fenced(const struct attack* attack, const struct stage* stage) {
  // Told to end, or left alone by its prover, it ends what it fenced in first: an attack's children may be stopped.
  sigset_t told;
  sigemptyset(&told);
  sigaddset(&told, SIGTERM);
  sigprocmask(SIG_BLOCK, &told, NULL);
  const int signals = signalfd(-1, &told, SFD_CLOEXEC);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  own_mounts(stage);
  limit(RLIMIT_CORE, kMegabyte);  // Not 0, or D66 could not show that it works; a core falls into the scratch.
  limit(RLIMIT_CPU, 2 * kSeconds);
  limit(RLIMIT_AS, (rlim_t)1024 * kMegabyte);
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child < 0) return 3;
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self) _exit(3);
    close(signals);
    sigprocmask(SIG_UNBLOCK, &told, NULL);
    leave_open();
    if (stage->scratch != NULL && chdir(stage->scratch) != 0) _exit(3);
    _exit(run_attack(attack, stage));
  }
  const int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
  struct pollfd ended[2] = {{pidfd, POLLIN, 0}, {signals, POLLIN, 0}};
  const long deadline = (attack->traits & (ENDED_BY_GUARD | SEEN_LATE)) == ENDED_BY_GUARD && stage->deadline_ms > 0
                            ? stage->deadline_ms * 5 / 2
                            : kSeconds * 1000;
  const int late = poll(ended, 2, (int)deadline) == 0;
  if (late || ended[1].revents != 0) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if ((attack->traits & LEAVES_PROCESSES) != 0) poll(NULL, 0, kSettleMs);
  const int survivors = for_children(0, 0);
  kill_rest();
  dprintf(2, "fence survivors=%d status=%d timeout=%d\n", survivors, status, late);
  return 0;
}
