// Host processes through /proc, and descriptors that the caller forgot.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "knock.h"

#define PROC "pid namespace, landlock"

static const char* entry_of(const struct attempt* attempt, const char* name) {
  static char path[256];
  snprintf(path, sizeof path, "/proc/%d/%s", attempt->stage->pid, name);
  return path;
}

static enum outcome read_entry(struct attempt* attempt, const char* name) {
  const int fd = open(entry_of(attempt, name), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return refused(attempt, name);
  if (fd_holds(fd, attempt->stage->secret)) return worked(attempt, "the secret");
  errno = ENOENT;
  return refused(attempt, "another process");
}

static enum outcome run_a08_environ(struct attempt* attempt) { return read_entry(attempt, "environ"); }
ATTACK(a08_environ, "A8a", "host-environ", "read the environment of a host process", PROC, 0);
static enum outcome run_a08_fd(struct attempt* attempt) { return read_entry(attempt, "fd/5"); }
ATTACK(a08_fd, "A8b", "host-descriptor", "open a descriptor of a host process", PROC, 0);
static enum outcome run_a08_root(struct attempt* attempt) {
  char name[512];
  snprintf(name, sizeof name, "root%.200s", attempt->stage->file);
  return read_entry(attempt, name);
}
ATTACK(a08_root, "A8c", "host-root", "reach a file through the root of a host process", PROC, 0);
static enum outcome run_a08_cwd(struct attempt* attempt) { return read_entry(attempt, "cwd/secret"); }
ATTACK(a08_cwd, "A8d", "host-cwd", "reach a file through the directory of a host process", PROC, 0);

// The environment lies at the top of the stack: one read finds it.
static enum outcome run_a08_mem(struct attempt* attempt) {
  static char maps[1 << 15], stack[1 << 18];
  if (slurp(entry_of(attempt, "maps"), maps, sizeof maps) <= 0) return refused(attempt, "maps");
  char* line = strstr(maps, "[stack]");
  if (line == NULL) return refused(attempt, "no stack");
  while (line > maps && line[-1] != '\n') --line;
  unsigned long begin = 0, end = 0;
  sscanf(line, "%lx-%lx", &begin, &end);
  const int fd = open(entry_of(attempt, "mem"), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return refused(attempt, "mem");
  const unsigned long size = end - begin < sizeof stack ? end - begin : sizeof stack;
  const ssize_t got = pread(fd, stack, size, (off_t)(end - size));
  if (got > 0 && memory_holds(stack, got, attempt->stage->secret)) return worked(attempt, "the secret");
  return refused(attempt, "its memory");
}
ATTACK(a08_mem, "A8e", "host-memory", "read the memory of a host process", PROC, 0);

static enum outcome run_a08_list(struct attempt* attempt) {
  char text[64];
  if (slurp(entry_of(attempt, "comm"), text, sizeof text) <= 0) return refused(attempt, "its name");
  if (strncmp(text, "belljar-victim", 14) != 0) return errno = ENOENT, refused(attempt, "another process");
  return worked(attempt, "a host process by its number");
}
ATTACK(a08_list, "A8f", "host-processes", "see that a process of the host exists", PROC, 0);

static enum outcome run_a08_init_root(struct attempt* attempt) {
  char path[512];
  for (int pid = 1; pid <= 2; ++pid) {
    snprintf(path, sizeof path, "/proc/%d/root%s", pid == 1 ? 1 : getppid(), attempt->stage->file);
    if (file_holds(path, attempt->stage->secret)) return worked(attempt, "the secret, through the root of init");
  }
  return refused(attempt, "the root of init");
}
ATTACK(a08_init_root, "A8g", "init-root", "reach a host file through the root of its init",
       "root filesystem, landlock, pid namespace", 0);

static enum outcome run_a08_init_fds(struct attempt* attempt) {
  // Init keeps the line to the supervisor; whoever holds it can forge a result.
  for (int fd = 0; fd < 64; ++fd) {
    char path[64], target[256];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getppid(), fd);
    if (readlink(path, target, sizeof target) > 0) return worked(attempt, "a descriptor of its parent");
  }
  return refused(attempt, "its descriptors");
}
ATTACK(a08_init_fds, "A8h", "init-descriptors", "list the descriptors of its init", "supervisor", 0);

static enum outcome run_a09_left_open(struct attempt* attempt) {
  if (attempt->stage->fd <= 2) return unable(attempt, "nothing was left open");
  if (fd_holds(attempt->stage->fd, attempt->stage->secret)) return worked(attempt, "a descriptor of the caller");
  if (errno == 0) errno = EBADF;
  return refused(attempt, "read");
}
ATTACK(a09_left_open, "A9a", "left-open", "read a descriptor that the caller left open", "descriptors", 0);

static enum outcome run_a09_any(struct attempt* attempt) {
  for (int fd = 3; fd < 1024; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) return worked(attempt, "a descriptor above the standard streams");
  }
  return refused(attempt, "no other descriptor");
}
ATTACK(a09_any, "A9b", "any-descriptor", "find any descriptor but the standard streams", "descriptors", 0);

static enum outcome connect_to(struct attempt* attempt, const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return refused(attempt, "socket");
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  const int result = connect(fd, (struct sockaddr*)&address, sizeof address);
  close(fd);
  return result != 0 ? refused(attempt, "connect") : worked(attempt, path);
}
static enum outcome run_a20_socket(struct attempt* attempt) { return connect_to(attempt, attempt->stage->unix_socket); }
ATTACK(a20_socket, "A20a", "host-socket", "connect to a socket of the host by its path", "root filesystem?, seccomp?",
       0);
static enum outcome run_a20_agents(struct attempt* attempt) {
  const char* const paths[] = {"/run/docker.sock",
                               "/var/run/docker.sock",
                               "/run/containerd/containerd.sock",
                               "/run/podman/podman.sock",
                               "/run/dbus/system_bus_socket",
                               "/run/systemd/private",
                               "/run/systemd/journal/stdout",
                               "/run/nscd/socket"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; ++i) {
    if (connect_to(attempt, paths[i]) == WORKED) return WORKED;
  }
  return refused(attempt, "docker, containerd, D-Bus, systemd");
}
ATTACK(a20_agents, "A20b", "service-sockets", "connect to docker, containerd, D-Bus, systemd",
       "root filesystem?, seccomp?", 0);
