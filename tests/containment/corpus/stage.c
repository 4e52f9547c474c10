// The stage: what an attack finds on the host to reach for. `belljar-corpus stage directory=D secret=S mqueue=/M` makes
// the directory with a file and a socket, listeners, shared memory, a message queue and a victim process, prints where
// they are, and then answers each line of its input with
//
//   intact              nothing was read, changed, signalled, connected to
//   touched <what>      something was
//
// At the end of its input, which is also what the prover's death looks like, it removes everything.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "corpus.h"

enum { kVictimFile = 5, kVictimPipe = 6, kListeners = 4 };

static struct {
  char file[256], socket[256], abstract[128], shared_file[160];
  int listeners[kListeners];  // tcp, udp, unix, abstract
  int ports[2];
  int shm;
  char* shared;
  mqd_t queue;
  pid_t victim;
  int victim_pipe;
} kept = {.queue = (mqd_t)-1, .shm = -1};

static const char* const kListenerNames[kListeners] = {"tcp listener", "udp socket", "unix listener",
                                                       "abstract listener"};

static void on_signal(int number) {
  const char byte = (char)number;
  if (write(kVictimPipe, &byte, 1) != 1) _exit(1);
}

// The secret is in its environment, in its memory and behind an open descriptor.
int be_victim(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "belljar-victim");
  // Where Yama is on, it would be the guard of outer processes and not Belljar.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  for (int number = 1; number < NSIG; ++number) {
    if (number != SIGCHLD) signal(number, on_signal);
  }
  on_signal(0);  // Ready.
  for (;;) pause();
}

static int listen_inet(int type, int* port) {
  const int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  if (bind(fd, (struct sockaddr*)&address, size) != 0) return -1;
  if (type == SOCK_STREAM && listen(fd, 8) != 0) return -1;
  if (getsockname(fd, (struct sockaddr*)&address, &size) != 0) return -1;
  *port = ntohs(address.sin_port);
  return fd;
}

static int listen_unix(const char* name, int is_abstract) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(name) + 2 > sizeof address.sun_path) return -1;
  strcpy(address.sun_path + is_abstract, name);
  const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name) + 1);
  if (bind(fd, (struct sockaddr*)&address, is_abstract ? size : sizeof address) != 0) return -1;
  return listen(fd, 8) == 0 ? fd : -1;
}

static int start_victim(const struct stage* stage) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  kept.victim_pipe = ends[0];
  kept.victim = fork();
  if (kept.victim == 0) {
    char variable[256];
    snprintf(variable, sizeof variable, "BELLJAR_SECRET=%s", stage->secret);
    const int file = open(kept.file, O_RDWR | O_CLOEXEC);
    if (chdir(stage->directory) != 0 || dup2(file, kVictimFile) < 0 || dup2(ends[1], kVictimPipe) < 0) _exit(1);
    execve("/proc/self/exe", (char*[]){"belljar-corpus", "victim", NULL}, (char*[]){variable, NULL});
    _exit(1);
  }
  close(ends[1]);
  char ready;
  const int got = read(ends[0], &ready, 1) == 1;
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return got ? 0 : -1;
}

static int build(const struct stage* stage) {
  umask(0);
  if (mkdir(stage->directory, 0755) != 0) return -1;
  snprintf(kept.file, sizeof kept.file, "%s/secret", stage->directory);
  snprintf(kept.socket, sizeof kept.socket, "%s/socket", stage->directory);
  const char* base = strrchr(stage->directory, '/');
  snprintf(kept.abstract, sizeof kept.abstract, "%s", base == NULL ? "belljar" : base + 1);
  const int fd = open(kept.file, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0 || dprintf(fd, "%s\n", stage->secret) < 0) return -1;
  close(fd);
  char path[320];
  snprintf(path, sizeof path, "%s/shared", stage->directory);
  if (mkdir(path, 0755) != 0) return -1;
  snprintf(path, sizeof path, "%s/shared/file", stage->directory);
  close(open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644));
  // The device that is always full: as good as any to show that one opens, and it can't hurt.
  snprintf(path, sizeof path, "%s/shared/device", stage->directory);
  (void)!mknod(path, S_IFCHR | 0666, makedev(1, 7));
  snprintf(kept.shared_file, sizeof kept.shared_file, "/dev/shm/%s", kept.abstract);
  const int shared_file = open(kept.shared_file, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (shared_file >= 0) dprintf(shared_file, "%s\n", stage->secret);
  close(shared_file);
  kept.listeners[0] = listen_inet(SOCK_STREAM, &kept.ports[0]);
  kept.listeners[1] = listen_inet(SOCK_DGRAM, &kept.ports[1]);
  kept.listeners[2] = listen_unix(kept.socket, 0);
  kept.listeners[3] = listen_unix(kept.abstract, 1);
  // Marked as removed at once: it is gone with its last user, and its id still works until then.
  kept.shm = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0666);
  kept.shared = kept.shm < 0 ? NULL : shmat(kept.shm, NULL, 0);
  if (kept.shm >= 0) shmctl(kept.shm, IPC_RMID, NULL);
  if (kept.shared == (char*)-1) kept.shared = NULL;
  if (kept.shared != NULL) strcpy(kept.shared, stage->secret);
  if (stage->mqueue != NULL) {
    struct mq_attr attributes = {.mq_maxmsg = 2, .mq_msgsize = 64};
    kept.queue = mq_open(stage->mqueue, O_CREAT | O_EXCL | O_RDWR | O_NONBLOCK | O_CLOEXEC, 0666, &attributes);
    if (kept.queue != (mqd_t)-1) mq_send(kept.queue, stage->secret, strlen(stage->secret), 0);
  }
  return start_victim(stage);
}

// The first thing that is not as it was, or NULL.
static const char* damage(const struct stage* stage) {
  char buffer[256];
  int status;
  if (waitpid(kept.victim, &status, WNOHANG | WUNTRACED) != 0) return "the victim process was killed or stopped";
  if (read(kept.victim_pipe, buffer, 1) == 1) return "the victim process got a signal";
  for (int i = 0; i < kListeners; ++i) {
    if (kept.listeners[i] < 0) continue;
    const int got = i == 1 ? (int)recv(kept.listeners[i], buffer, sizeof buffer, 0)
                           : accept4(kept.listeners[i], NULL, NULL, SOCK_CLOEXEC);
    if (got >= 0) return kListenerNames[i];
  }
  const long length = slurp(kept.file, buffer, sizeof buffer);
  if (length != (long)strlen(stage->secret) + 1 || !memory_holds(buffer, length, stage->secret)) return "the file";
  struct stat status_now;
  if (stat(kept.file, &status_now) != 0 || (status_now.st_mode & 07777) != 0666 || status_now.st_nlink != 1)
    return "the file's attributes";
  if (kept.shared != NULL && strcmp(kept.shared, stage->secret) != 0) return "the shared memory";
  struct mq_attr attributes;
  if (kept.queue != (mqd_t)-1 && (mq_getattr(kept.queue, &attributes) != 0 || attributes.mq_curmsgs != 1))
    return "the message queue";
  return NULL;
}

static int remove_entry(const char* path, const struct stat* status, int kind, struct FTW* walk) {
  (void)status, (void)kind, (void)walk;
  remove(path);
  return 0;
}

int keep_stage(const struct stage* stage) {
  // Ctrl-C is for the prover, whose end is ours.
  for (const int* number = (const int[]){SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, 0}; *number != 0; ++number) {
    signal(*number, SIG_IGN);
  }
  if (stage->directory == NULL || stage->secret == NULL) return 2;
  prctl(PR_SET_NAME, "belljar-stage");
  const int built = build(stage);
  if (built == 0) {
    printf("ready file=%s pid=%d", kept.file, kept.victim);
    if (kept.listeners[0] >= 0) printf(" tcp=%d", kept.ports[0]);
    if (kept.listeners[1] >= 0) printf(" udp=%d", kept.ports[1]);
    if (kept.listeners[2] >= 0) printf(" unix=%s", kept.socket);
    if (kept.listeners[3] >= 0) printf(" abstract=%s", kept.abstract);
    if (kept.shared != NULL) printf(" shm=%d", kept.shm);
    if (kept.queue != (mqd_t)-1) printf(" mqueue=%s", stage->mqueue);
    printf("\n");
    fflush(stdout);
    char line[16];
    while (read(0, line, sizeof line) > 0) {
      const char* touched = damage(stage);
      dprintf(1, touched == NULL ? "intact\n" : "touched %s\n", touched);
    }
  } else {
    printf("failed %s\n", strerror(errno));
  }
  if (stage->mqueue != NULL) mq_unlink(stage->mqueue);
  if (kept.shared_file[0] != '\0') unlink(kept.shared_file);
  if (kept.victim > 0) kill(kept.victim, SIGKILL);
  nftw(stage->directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
  return built == 0 ? 0 : 3;
}
