// What is mounted read-only, without set-uid, without devices.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "knock.h"

// Asks whether it could be written, without opening it: a truncated program would be missed.
static enum outcome may_write(struct attempt* attempt, const char* path) {
  if (access(path, W_OK) != 0) return refused(attempt, "access for writing");
  return worked(attempt, "may be written");
}

// A file beside it could take its name. The program itself can't be opened while it runs, whoever asks.
static enum outcome run_a06_own_program(struct attempt* attempt) {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return unable(attempt, "no name of its own program");
  path[length] = '\0';
  char* slash = strrchr(path, '/');
  if (slash != NULL) slash[slash == path ? 1 : 0] = '\0';
  const int fd = open(path, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR))
    return unable(attempt, "this filesystem has no unnamed files");
  if (fd < 0) return refused(attempt, "a file beside it");
  // In a sandbox the program may be mounted into a directory that is the guest's own: that is not where it lies.
  struct stat program, beside;
  const int same = stat("/proc/self/exe", &program) == 0 && fstat(fd, &beside) == 0 && program.st_dev == beside.st_dev;
  close(fd);
  errno = EXDEV;
  if (!same) return refused(attempt, "a file in the directory where it lies");
  return worked(attempt, "made a file that could take its place");
}
ATTACK(a06_own_program, "A6a", "own-program", "replace the program it was started from",
       "root filesystem, landlock?, identity?", 0);

static enum outcome run_a06_parent_program(struct attempt* attempt) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/exe", (int)getppid());
  return may_write(attempt, path);
}
ATTACK(a06_parent_program, "A6b", "belljar-itself", "overwrite the program of its parent, belljar itself",
       "root filesystem, identity?, supervisor", 0);

static enum outcome run_a13_write_system(struct attempt* attempt) {
  const int fd = open("/usr/bin/env", O_WRONLY | O_APPEND | O_CLOEXEC);
  return fd < 0 ? refused(attempt, "/usr/bin/env") : worked(attempt, "/usr/bin/env open for writing");
}
ATTACK(a13_write_system, "A13a", "write-system", "open a program in /usr/bin for writing",
       "root filesystem, landlock, identity", 0);

static enum outcome run_a13_chmod(struct attempt* attempt) {
  struct stat status;
  if (stat("/usr", &status) != 0) return unable(attempt, "no /usr here");
  if (chmod("/usr", status.st_mode & 07777) != 0) return refused(attempt, "chmod of /usr");
  return worked(attempt, "the mode of /usr set to what it was");
}
ATTACK(a13_chmod, "A13b", "chmod-system", "change the mode of /usr", "root filesystem, identity", 0);

static enum outcome run_a13_xattr(struct attempt* attempt) {
  // Removing one that is not there: the permission comes first, ENODATA after it.
  if (removexattr("/usr", "user.belljar-not-there") != 0 && errno != ENODATA && errno != EOPNOTSUPP)
    return refused(attempt, "removexattr");
  if (errno == EOPNOTSUPP) return unable(attempt, "this filesystem has no such attributes");
  return worked(attempt, "extended attributes of /usr");
}
ATTACK(a13_xattr, "A13c", "xattr-system", "change extended attributes of /usr", "root filesystem, identity", 0);

// A program whose output has nowhere to go stands still with the ids it got, and /proc tells them.
static enum outcome gains(struct attempt* attempt, const char* const* programs, mode_t bit, const char* line) {
  for (; *programs != NULL; ++programs) {
    struct stat status;
    if (stat(*programs, &status) != 0 || (status.st_mode & bit) == 0) continue;
    int ends[2];
    if (pipe(ends) != 0) return refused(attempt, "pipe");
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    char filler[4096] = {0};
    while (write(ends[1], filler, sizeof filler) > 0) {
    }
    while (write(ends[1], filler, 1) > 0) {
    }
    fcntl(ends[1], F_SETFL, 0);
    const pid_t child = fork();
    if (child == 0) {
      if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(1);
      dup2(ends[1], 1);
      dup2(ends[1], 2);
      execl(*programs, *programs, "--help", (char*)NULL);
      _exit(1);
    }
    usleep(150 * 1000);
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)child);
    const long got = slurp(path, text, sizeof text);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ends[0]);
    close(ends[1]);
    unsigned real = 0, effective = 0;
    const char* at = got > 0 ? strstr(text, line) : NULL;
    if (at != NULL && sscanf(at + strlen(line), "%u %u", &real, &effective) == 2 && real != effective)
      return worked(attempt, *programs);
    errno = EPERM;
    return refused(attempt, *programs);
  }
  return unable(attempt, "no such program here");
}
static enum outcome run_a14_setuid(struct attempt* attempt) {
  return gains(
      attempt,
      (const char* const[]){"/usr/bin/su", "/bin/su", "/usr/bin/mount", "/usr/bin/passwd", "/usr/bin/chfn", NULL},
      S_ISUID, "\nUid:");
}
ATTACK(a14_setuid, "A14a", "setuid-program", "become root by a set-uid program",
       "no_new_privs, root filesystem, user namespace", 0);
static enum outcome run_a14_setgid(struct attempt* attempt) {
  return gains(attempt,
               (const char* const[]){"/usr/bin/chage", "/usr/bin/expiry", "/usr/bin/wall", "/usr/bin/write",
                                     "/usr/bin/ssh-agent", "/usr/bin/crontab", NULL},
               S_ISGID, "\nGid:");
}
ATTACK(a14_setgid, "A14b", "setgid-program", "join a group by a set-gid program",
       "no_new_privs, root filesystem, user namespace", 0);

static enum outcome run_a14_make_setuid(struct attempt* attempt) {
  char path[512];
  snprintf(path, sizeof path, "%s/mine", attempt->stage->scratch);
  const int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
  if (fd < 0) return refused(attempt, "create");
  struct stat status;
  if (fchmod(fd, 04755) != 0) return refused(attempt, "fchmod");
  if (fstat(fd, &status) != 0 || (status.st_mode & S_ISUID) == 0) return refused(attempt, "the bit is not there");
  return worked(attempt, "a set-uid file");
}
ATTACK(a14_make_setuid, "A14c", "make-setuid", "leave a set-uid file behind in a directory", "seccomp", 0);

static enum outcome make_node(struct attempt* attempt, mode_t kind, dev_t device) {
  char path[512];
  snprintf(path, sizeof path, "%s/node", attempt->stage->scratch);
  if (mknod(path, kind | 0666, device) != 0) return refused(attempt, "mknod");
  return worked(attempt, "a device file of its own");
}
static enum outcome run_a15_character(struct attempt* attempt) { return make_node(attempt, S_IFCHR, makedev(1, 1)); }
ATTACK(a15_character, "A15a", "mknod-memory", "make a device file for the host's memory",
       "seccomp, landlock, capabilities, user namespace", 0);
static enum outcome run_a15_block(struct attempt* attempt) { return make_node(attempt, S_IFBLK, makedev(254, 0)); }
ATTACK(a15_block, "A15b", "mknod-disk", "make a device file for a disk of the host",
       "seccomp, landlock, capabilities, user namespace", 0);

static enum outcome run_a15_devices(struct attempt* attempt) {
  const char* const paths[] = {"/dev/mem",          "/dev/kmsg", "/dev/fuse",    "/dev/kvm",
                               "/dev/sda",          "/dev/vda",  "/dev/nvme0n1", "/dev/net/tun",
                               "/dev/loop-control", "/dev/port", "/dev/uinput"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; ++i) {
    if (open(paths[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK) >= 0) return worked(attempt, paths[i]);
  }
  return refused(attempt, "kmsg, fuse, kvm, disks");
}
ATTACK(a15_devices, "A15c", "host-devices", "open devices of the host: memory, log, disks, kvm, fuse",
       "root filesystem, landlock", 0);

static enum outcome run_a16_handle(struct attempt* attempt) {
  static struct {
    struct file_handle head;
    char bytes[MAX_HANDLE_SZ];
  } handle = {.head.handle_bytes = MAX_HANDLE_SZ};
  int mount_id = 0;
  if (syscall(SYS_name_to_handle_at, AT_FDCWD, "/usr", &handle, &mount_id, 0) != 0) {
    if (errno == EOPNOTSUPP) return unable(attempt, "this filesystem has no handles");
    // The number of a root directory is no secret: 2 on ext4.
    handle.head.handle_bytes = 8;
    handle.head.handle_type = 1;
    memcpy(handle.bytes, "\2\0\0\0\0\0\0\0", 8);
  }
  const int root = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const long fd = syscall(SYS_open_by_handle_at, root, &handle, O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno != ESTALE) return refused(attempt, "open_by_handle_at");
  return worked(attempt, "a file by its number, past every path");
}
ATTACK(a16_handle, "A16", "open-by-handle", "open a file by its number, past all paths", "seccomp, capabilities", 0);

static enum outcome run_a17_overlay(struct attempt* attempt) {
  if (setxattr(attempt->stage->scratch, "trusted.overlay.opaque", "y", 1, 0) != 0) {
    if (errno == EOPNOTSUPP) return unable(attempt, "this filesystem has no such attributes");
    return refused(attempt, "setxattr");
  }
  return worked(attempt, "attributes that an overlay obeys");
}
ATTACK(a17_overlay, "A17a", "overlay-attributes", "craft attributes that an overlay mount obeys",
       "seccomp, capabilities, user namespace", 0);

static enum outcome run_a17_whiteout(struct attempt* attempt) { return make_node(attempt, S_IFCHR, makedev(0, 0)); }
ATTACK(a17_whiteout, "A17b", "whiteout", "craft a whiteout, which needs no power", "landlock, seccomp", 0);

static const char* shared(const struct attempt* attempt, const char* name) {
  static char path[512];
  snprintf(path, sizeof path, "%s/%s", attempt->stage->shared, name);
  return path;
}
static enum outcome run_a13_chmod_mount(struct attempt* attempt) {
  if (chmod(shared(attempt, "file"), 0600) != 0) return refused(attempt, "chmod");
  return worked(attempt, "the mode of a file that is mounted read-only");
}
ATTACK(a13_chmod_mount, "A13d", "chmod-mount", "change the mode of a file that is mounted read-only", "root filesystem",
       NEEDS_MOUNT);

static enum outcome run_a13_touch_mount(struct attempt* attempt) {
  if (utimensat(AT_FDCWD, shared(attempt, "file"), NULL, 0) != 0) return refused(attempt, "utimensat");
  return worked(attempt, "the times of a file that is mounted read-only");
}
ATTACK(a13_touch_mount, "A13e", "touch-mount", "change the times of a file that is mounted read-only",
       "root filesystem", NEEDS_MOUNT);

static enum outcome run_a13_write_mount(struct attempt* attempt) {
  const int fd = open(shared(attempt, "file"), O_WRONLY | O_CLOEXEC);
  return fd < 0 ? refused(attempt, "open") : worked(attempt, "a file that is mounted read-only, open for writing");
}
ATTACK(a13_write_mount, "A13f", "write-mount", "write to a file that is mounted read-only", "root filesystem, landlock",
       NEEDS_MOUNT);

static enum outcome run_a15_mounted_device(struct attempt* attempt) {
  const int fd = open(shared(attempt, "device"), O_RDONLY | O_CLOEXEC);
  return fd < 0 ? refused(attempt, "open") : worked(attempt, "a device in a mounted directory");
}
ATTACK(a15_mounted_device, "A15d", "mounted-device", "open a device file in a directory that is mounted",
       "root filesystem", NEEDS_MOUNT);
