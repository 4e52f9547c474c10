// What several attacks need: seeking power, reading files, looking for the secret.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
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
