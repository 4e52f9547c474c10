// Files by which the kernel is steered or tells about the host. Opened for writing at most, never written.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "knock.h"

static enum outcome open_one(struct attempt* attempt, const char* const* paths, int flags, const char* what) {
  int error = ENOENT;
  for (; *paths != NULL; ++paths) {
    if (open(*paths, flags | O_CLOEXEC | O_NONBLOCK) >= 0) return worked(attempt, *paths);
    if (errno != ENOENT) error = errno;
  }
  errno = error;
  return refused(attempt, what);
}
// One that tells something: an empty cover is no news.
static enum outcome read_one(struct attempt* attempt, const char* const* paths, const char* what) {
  int error = ENOENT;
  for (; *paths != NULL; ++paths) {
    char byte[2];
    if (slurp(*paths, byte, sizeof byte) > 0) return worked(attempt, *paths);
    if (errno != ENOENT && errno != 0) error = errno;
  }
  errno = error;
  return refused(attempt, what);
}
#define WRITES(identifier, id_, name_, tries_, guards_, ...)                                          \
  static enum outcome run_##identifier(struct attempt* attempt) {                                     \
    return open_one(attempt, (const char* const[]){__VA_ARGS__, NULL}, O_WRONLY, "open for writing"); \
  }                                                                                                   \
  ATTACK(identifier, id_, name_, tries_, guards_, 0)
#define READS(identifier, id_, name_, tries_, guards_, ...)                     \
  static enum outcome run_##identifier(struct attempt* attempt) {               \
    return read_one(attempt, (const char* const[]){__VA_ARGS__, NULL}, "read"); \
  }                                                                             \
  ATTACK(identifier, id_, name_, tries_, guards_, 0)

#define STEER "root filesystem, landlock, identity, user namespace"
#define TELL "root filesystem, landlock"

WRITES(c46_cgroup, "C46a", "cgroup-write", "move processes between the host's cgroups", STEER,
       "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory/tasks", "/sys/fs/cgroup/unified/cgroup.procs",
       "/sys/fs/cgroup/pids/tasks");

static enum outcome run_c46_cgroup_path(struct attempt* attempt) {
  char text[4096];
  if (slurp("/proc/self/cgroup", text, sizeof text) <= 0) return refused(attempt, "/proc/self/cgroup");
  for (char* line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    const char* path = strrchr(line, ':');
    // Outside, the line is there at all: what it says depends on how the host is divided.
    if (!attempt->stage->inside) return worked(attempt, "its place among the host's cgroups");
    if (path != NULL && strcmp(path, ":/") != 0) return worked(attempt, "its place among the host's cgroups");
  }
  errno = ENOENT;
  return refused(attempt, "a cgroup root of its own");
}
ATTACK(c46_cgroup_path, "C46b", "cgroup-path", "learn its place among the host's cgroups", "cgroup namespace, landlock",
       0);

WRITES(c47_core_pattern, "C47a", "core-pattern", "have the host's kernel start a program on a crash", STEER,
       "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/sys/kernel/uevent_helper");
WRITES(c47_sysrq, "C47b", "sysrq", "press the host's SysRq", STEER, "/proc/sysrq-trigger", "/proc/sys/kernel/sysrq");
WRITES(c47_sysctl, "C47c", "sysctl", "change the host's kernel settings", STEER, "/proc/sys/vm/drop_caches",
       "/proc/sys/kernel/panic", "/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/hostname");
WRITES(c47_sys, "C47d", "sys-write", "steer the host's devices by /sys", STEER, "/sys/power/state",
       "/sys/kernel/profiling", "/sys/devices/system/cpu/cpu1/online", "/sys/kernel/mm/transparent_hugepage/enabled");
READS(c47_kcore, "C47e", "kcore", "read the host's memory", TELL ", identity", "/proc/kcore", "/dev/mem");
READS(c47_kmsg, "C47f", "kmsg", "read the host's kernel log", TELL ", identity", "/proc/kmsg", "/dev/kmsg");
READS(c47_kallsyms, "C47g", "kallsyms", "read the kernel's symbols and modules", TELL, "/proc/kallsyms",
      "/proc/modules");
READS(c47_timers, "C47h", "timers", "watch the host's timers, interrupts and locks", TELL, "/proc/timer_list",
      "/proc/sched_debug", "/proc/interrupts", "/proc/softirqs", "/proc/locks");
READS(c47_hardware, "C47i", "hardware", "learn the host's hardware and disks", TELL, "/proc/iomem", "/proc/partitions",
      "/proc/diskstats", "/proc/swaps", "/proc/zoneinfo");
READS(c47_boot, "C47j", "boot-line", "read how the host was started", TELL, "/proc/cmdline", "/proc/config.gz",
      "/proc/bootconfig");
READS(c47_keys, "C47k", "keys", "list the keys of the host's keyrings", TELL, "/proc/keys", "/proc/key-users");
static enum outcome run_c47_ipc_tables(struct attempt* attempt) {
  static char text[1 << 16];
  char number[16];
  if (slurp("/proc/sysvipc/shm", text, sizeof text) <= 0) return refused(attempt, "/proc/sysvipc");
  snprintf(number, sizeof number, " %d ", attempt->stage->shm_id);
  if (strstr(text, number) == NULL) return errno = ENOENT, refused(attempt, "a table of its own");
  return worked(attempt, "the host's shared memory in a table");
}
ATTACK(c47_ipc_tables, "C47l", "ipc-tables", "list the host's SysV objects", TELL ", ipc namespace", 0);

static enum outcome run_c47_firmware(struct attempt* attempt) {
  for (const char* const* path =
           (const char* const[]){"/sys/firmware", "/sys/kernel", "/sys/class/net", "/sys/block", 0};
       *path; ++path) {
    DIR* directory = opendir(*path);
    if (directory == NULL) continue;
    int entries = 0;
    while (readdir(directory) != NULL) ++entries;
    if (entries > 2) return worked(attempt, *path);
  }
  return refused(attempt, "/sys/firmware, /sys/kernel, /sys/class");
}
ATTACK(c47_firmware, "C47m", "firmware", "look at the host's firmware and devices in /sys", "root filesystem", 0);

static enum outcome run_c47_bus(struct attempt* attempt) {
  for (const char* const* path =
           (const char* const[]){"/proc/bus", "/proc/acpi", "/proc/scsi", "/proc/fs", "/proc/driver", "/proc/irq", 0};
       *path; ++path) {
    DIR* directory = opendir(*path);
    if (directory == NULL) continue;
    int entries = 0;
    while (readdir(directory) != NULL) ++entries;
    if (entries > 2) return worked(attempt, *path);
  }
  return refused(attempt, "/proc/bus, /proc/acpi, /proc/scsi");
}
ATTACK(c47_bus, "C47n", "bus", "look at the host's buses and drivers in /proc", TELL, 0);
