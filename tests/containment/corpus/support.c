// What several attacks need: seeking power, reading files, looking for the secret.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attack.h"

static int put(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  const ssize_t wrote = write(fd, text, strlen(text));
  close(fd);
  return wrote < 0 ? -1 : 0;
}

int seek_power(void) {
  if (geteuid() == 0) return 0;
  const unsigned uid = geteuid();
  const unsigned gid = getegid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return -1;
  char line[64];
  snprintf(line, sizeof line, "0 %u 1", uid);
  if (put("/proc/self/uid_map", line) != 0) return -1;
  put("/proc/self/setgroups", "deny");
  snprintf(line, sizeof line, "0 %u 1", gid);
  return put("/proc/self/gid_map", line);
}

int is_denied(int error) { return error == EPERM || error == EACCES || error == ENOSYS; }

int memory_holds(const void* memory, long size, const char* secret) {
  return secret != NULL && *secret != '\0' && memmem(memory, (size_t)size, secret, strlen(secret)) != NULL;
}

int fd_holds(int fd, const char* secret) {
  static char buffer[1 << 16];
  const ssize_t got = pread(fd, buffer, sizeof buffer, 0);
  const ssize_t streamed = got < 0 ? read(fd, buffer, sizeof buffer) : got;
  return streamed > 0 && memory_holds(buffer, streamed, secret);
}

int file_holds(const char* path, const char* secret) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return 0;
  const int held = fd_holds(fd, secret);
  close(fd);
  return held;
}

long slurp(const char* path, char* buffer, long size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return -1;
  long length = 0;
  while (length < size - 1) {
    const ssize_t got = read(fd, buffer + length, (size_t)(size - 1 - length));
    if (got < 0 && length == 0) {
      const int error = errno;
      close(fd);
      errno = error;
      return -1;
    }
    if (got <= 0) break;
    length += got;
  }
  close(fd);
  buffer[length] = '\0';
  return length;
}

void* shared_memory(const struct stage* stage, long size) {
  char name[256];
  snprintf(name, sizeof name, "%s/belljar-shared-%d", stage->scratch != NULL ? stage->scratch : "/tmp", (int)getpid());
  const int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return NULL;
  unlink(name);
  void* memory =
      ftruncate(fd, size) == 0 ? mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  close(fd);
  return memory == MAP_FAILED ? NULL : memory;
}

long in_processes(const struct stage* stage, int count, long wanted, int milliseconds, long (*hold)(long)) {
  pid_t children[16];
  long* held = shared_memory(stage, sizeof(long[16]));
  if (held == NULL) return -1;
  for (int i = 0; i < count; ++i) {
    children[i] = fork();
    if (children[i] == 0) {
      alarm(20);
      held[i] = hold(wanted / count + 1);
      _exit(raise(SIGSTOP));
    }
  }
  long total = 0;
  for (int i = 0; i < count; ++i) {
    int status = 0;
    if (children[i] > 0 && waitpid(children[i], &status, WUNTRACED) > 0 && WIFSTOPPED(status)) total += held[i];
  }
  usleep((useconds_t)milliseconds * 1000);
  for (int i = 0; i < count; ++i) {
    if (children[i] > 0) kill(children[i], SIGKILL);
  }
  return total;
}
