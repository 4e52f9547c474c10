// Files of the host by their path, by links and by roundabout paths.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "knock.h"

#define FILES "root filesystem, landlock"

static enum outcome read_secret(struct attempt* attempt, const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return refused(attempt, "open");
  if (fd_holds(fd, attempt->stage->secret)) return worked(attempt, "the secret of a host file");
  errno = ENOENT;
  return refused(attempt, "another file stands there");
}

static enum outcome run_a01_read_file(struct attempt* attempt) { return read_secret(attempt, attempt->stage->file); }
ATTACK(a01_read_file, "A1a", "read-file", "read a file of the host by its path", FILES, 0);

static enum outcome run_a01_climb(struct attempt* attempt) {
  // More steps up than any directory is deep, from the working directory and from the root.
  for (const char* const* up = (const char* const[]){"", "/", "/proc/self/root/", "/proc/self/cwd/", 0}; *up; ++up) {
    char path[512];
    int length = snprintf(path, sizeof path, "%s", *up);
    for (int i = 0; i < 40; ++i) length += snprintf(path + length, sizeof path - (size_t)length, "../");
    snprintf(path + length, sizeof path - (size_t)length, "%s", attempt->stage->file + 1);
    if (read_secret(attempt, path) == WORKED) return worked(attempt, "the secret, by way of ..");
  }
  return refused(attempt, "paths through ..");
}
ATTACK(a01_climb, "A1b", "climb", "climb out by .. from everywhere", FILES, 0);

static enum outcome run_a01_write_file(struct attempt* attempt) {
  const int fd = open(attempt->stage->file, O_WRONLY | O_APPEND | O_CLOEXEC);
  return fd < 0 ? refused(attempt, "open") : worked(attempt, "a host file open for writing");
}
ATTACK(a01_write_file, "A1c", "write-file", "open a file of the host for writing", FILES, 0);

static enum outcome run_a01_stat_file(struct attempt* attempt) {
  struct stat status;
  if (stat(attempt->stage->file, &status) != 0) return refused(attempt, "stat");
  return worked(attempt, "size, owner and times of a host file");
}
ATTACK(a01_stat_file, "A1d", "stat-file", "look at the attributes of a host file", "root filesystem?", 0);

static enum outcome run_a01_list_directory(struct attempt* attempt) {
  DIR* directory = opendir(attempt->stage->directory);
  return directory == NULL ? refused(attempt, "opendir") : worked(attempt, "names of the host's files");
}
ATTACK(a01_list_directory, "A1e", "list-directory", "list a directory of the host", "root filesystem", 0);

static enum outcome run_a01_chmod_file(struct attempt* attempt) {
  if (chmod(attempt->stage->file, 0600) != 0) return refused(attempt, "chmod");
  return worked(attempt, "the mode of a host file changed");
}
ATTACK(a01_chmod_file, "A1f", "chmod-file", "change the mode of a host file", "root filesystem?, seccomp, identity?",
       0);

static enum outcome run_a01_remove_file(struct attempt* attempt) {
  if (unlink(attempt->stage->file) != 0) return refused(attempt, "unlink");
  return worked(attempt, "a host file is gone");
}
ATTACK(a01_remove_file, "A1g", "remove-file", "remove a file of the host", FILES, 0);

static enum outcome run_a01_truncate_file(struct attempt* attempt) {
  if (truncate(attempt->stage->file, 0) != 0) return refused(attempt, "truncate");
  return worked(attempt, "a host file is empty");
}
ATTACK(a01_truncate_file, "A1h", "truncate-file", "empty a host file without opening it", FILES, 0);

static enum outcome run_a01_plant_file(struct attempt* attempt) {
  char path[512];
  snprintf(path, sizeof path, "%s/planted", attempt->stage->directory);
  const int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return refused(attempt, "create");
  return worked(attempt, "a file of its own in a host directory");
}
ATTACK(a01_plant_file, "A1i", "plant-file", "make a file in a directory of the host", FILES, 0);

static enum outcome run_a01_exec_file(struct attempt* attempt) {
  // Any program of the host outside of the system's own directories would do; its own is one that is surely there.
  char path[512];
  snprintf(path, sizeof path, "/proc/%d/exe", attempt->stage->pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  return fd < 0 ? refused(attempt, "open") : worked(attempt, "the program of a host process");
}
ATTACK(a01_exec_file, "A1j", "program-of-host", "open the program of a host process", "pid namespace, landlock", 0);

static enum outcome run_a02_follow_link(struct attempt* attempt) {
  char path[512];
  snprintf(path, sizeof path, "%s/link", attempt->stage->scratch);
  if (symlink(attempt->stage->file, path) != 0) return refused(attempt, "symlink");
  return read_secret(attempt, path);
}
ATTACK(a02_follow_link, "A2", "follow-link", "read a host file through a link of its own", FILES, 0);

static enum outcome run_a03_exchange(struct attempt* attempt) {
  char mine[512];
  snprintf(mine, sizeof mine, "%s/swap", attempt->stage->directory);
  const int fd = open(mine, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0 || renameat2(AT_FDCWD, mine, AT_FDCWD, attempt->stage->file, RENAME_EXCHANGE) != 0)
    return refused(attempt, "renameat2");
  return worked(attempt, "a host file swapped for its own");
}
ATTACK(a03_exchange, "A3", "exchange", "swap a host file for one of its own", FILES, 0);

static enum outcome run_a04_hard_link(struct attempt* attempt) {
  char path[512];
  snprintf(path, sizeof path, "%s/hard", attempt->stage->directory);
  if (link(attempt->stage->file, path) != 0) return refused(attempt, "link");
  return worked(attempt, "a second name for a host file");
}
ATTACK(a04_hard_link, "A4", "hard-link", "give a host file a second name", FILES, 0);

static enum outcome run_a18_temporary(struct attempt* attempt) {
  // The host's own temporary files, whatever they are called, where this host keeps them.
  char parent[512];
  snprintf(parent, sizeof parent, "%s", attempt->stage->directory);
  char* base = strrchr(parent, '/');
  *base++ = '\0';
  DIR* directory = opendir(parent);
  if (directory == NULL) return refused(attempt, "opendir");
  for (struct dirent* entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
    if (strcmp(entry->d_name, base) == 0) return worked(attempt, "the host's temporary names");
  }
  errno = ENOENT;
  return refused(attempt, "temporary files of its own");
}
ATTACK(a18_temporary, "A18", "temporary-names", "find the host's temporary files", "root filesystem", 0);

static enum outcome run_a19_shared_memory(struct attempt* attempt) {
  char path[256];
  snprintf(path, sizeof path, "/dev/shm/%s", strrchr(attempt->stage->directory, '/') + 1);
  return read_secret(attempt, path);
}
ATTACK(a19_shared_memory, "A19", "dev-shm", "read shared memory of the host in /dev/shm", "root filesystem", 0);
