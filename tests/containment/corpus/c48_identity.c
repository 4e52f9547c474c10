// Who the guest is, and what of its caller it can still find.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>

#include "knock.h"

static enum outcome run_c48_environment(struct attempt* attempt) {
  for (char** variable = environ; *variable != NULL; ++variable) {
    if (memory_holds(*variable, (long)strlen(*variable), attempt->stage->secret))
      return worked(attempt, "a secret of the caller's environment");
  }
  errno = ENOENT;
  return refused(attempt, "no variable holds it");
}
ATTACK(c48_environment, "C48a", "environment", "find the caller's secrets in its environment", "environment", 0);

static enum outcome scan_proc(struct attempt* attempt, const char* name) {
  DIR* proc = opendir("/proc");
  if (proc == NULL) return refused(attempt, "/proc");
  for (struct dirent* entry = readdir(proc); entry != NULL; entry = readdir(proc)) {
    char path[300];
    if (atoi(entry->d_name) <= 0) continue;
    snprintf(path, sizeof path, "/proc/%s/%s", entry->d_name, name);
    if (file_holds(path, attempt->stage->secret)) return worked(attempt, "the caller's secret");
  }
  closedir(proc);
  errno = ENOENT;
  return refused(attempt, "no process shows it");
}
static enum outcome run_c48_init_environ(struct attempt* attempt) { return scan_proc(attempt, "environ"); }
ATTACK(c48_init_environ, "C48b", "environ-of-all", "search every environment in /proc, that of init too",
       "environment, pid namespace, landlock", 0);

static enum outcome run_c48_init_memory(struct attempt* attempt) {
  // Init is a copy of the caller: its memory held the caller's environment.
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/mem", (int)getppid());
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  return fd < 0 ? refused(attempt, "mem") : worked(attempt, "the memory of init, a copy of the caller's");
}
ATTACK(c48_init_memory, "C48c", "memory-of-init", "read init's memory, a copy of the caller's", "supervisor", 0);

static enum outcome run_c48_command_line(struct attempt* attempt) {
  char path[64], text[4096];
  snprintf(path, sizeof path, "/proc/%d/cmdline", (int)getppid());
  const long got = slurp(path, text, sizeof text);
  if (got <= 0) return refused(attempt, "the arguments of its parent");
  for (long i = 0; i < got; ++i) {
    if (text[i] != '\0') return worked(attempt, "the arguments of its caller");
  }
  errno = ENOENT;
  return refused(attempt, "they are wiped");
}
ATTACK(c48_command_line, "C48d", "command-line", "read the caller's arguments from its init", "environment", 0);

static enum outcome run_c49_groups(struct attempt* attempt) {
  gid_t groups[64];
  const int count = getgroups(64, groups);
  for (int i = 0; i < count; ++i) {
    // 65534 is how a group without a name inside looks; it is still a group, but one that opens nothing here.
    if (groups[i] != 65534 && (groups[i] != getegid() || geteuid() == 0))
      return worked(attempt, "a group of the caller");
  }
  if (count == 0 && geteuid() == 0 && setgroups(1, (gid_t[]){0}) == 0) return worked(attempt, "may join any group");
  errno = EPERM;
  return refused(attempt, "no other group");
}
ATTACK(c49_groups, "C49a", "groups", "keep or join groups of the host", "identity?, capabilities, user namespace", 0);

static enum outcome run_c49_capabilities(struct attempt* attempt) {
  char text[4096];
  if (slurp("/proc/self/status", text, sizeof text) <= 0) return refused(attempt, "/proc/self/status");
  for (const char* const* name = (const char* const[]){"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:", 0}; *name;
       ++name) {
    const char* at = strstr(text, *name);
    if (at != NULL && strtoull(at + 7, NULL, 16) != 0) return worked(attempt, *name);
  }
  errno = EPERM;
  return refused(attempt, "all five sets are empty");
}
ATTACK(c49_capabilities, "C49b", "capabilities", "find any capability left in any set", "capabilities", 0);

static enum outcome run_c49_become_root(struct attempt* attempt) {
  if (setresuid(0, 0, 0) != 0 || setresgid(0, 0, 0) != 0) return refused(attempt, "setresuid");
  return worked(attempt, "uid 0");
}
ATTACK(c49_become_root, "C49c", "become-root", "become uid 0", "user namespace, identity", 0);

static enum outcome run_c49_new_privileges(struct attempt* attempt) {
  if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0) return errno = EPERM, refused(attempt, "no_new_privs is set");
  return worked(attempt, "an exec may give it more than it has");
}
ATTACK(c49_new_privileges, "C49d", "new-privileges", "be able to gain privileges by exec", "no_new_privs", 0);

static enum outcome run_c49_host_root(struct attempt* attempt) {
  // The second number is who it is on the host.
  char text[256];
  unsigned inside = 0, outside = 0;
  if (slurp("/proc/self/uid_map", text, sizeof text) <= 0) return refused(attempt, "/proc/self/uid_map");
  if (sscanf(text, "%u %u", &inside, &outside) != 2) return refused(attempt, "no map");
  const unsigned host = outside + (geteuid() - inside);
  if (host == 0) return worked(attempt, "it is root on the host");
  errno = EPERM;
  return refused(attempt, "another uid than root");
}
ATTACK(c49_host_root, "C49e", "host-root-uid", "be root on the host, under whatever name", "identity", 0);

static enum outcome run_c49_hostname(struct attempt* attempt) {
  struct utsname name;
  if (attempt->stage->hostname == NULL) return unable(attempt, "the host has no name");
  if (uname(&name) == 0 && strcmp(name.nodename, attempt->stage->hostname) == 0) return worked(attempt, "its name");
  errno = ENOENT;
  return refused(attempt, "another name");
}
ATTACK(c49_hostname, "C49f", "hostname", "learn the name of the host", "uts namespace", 0);

static enum outcome run_c49_user_namespace(struct attempt* attempt) {
  // In the host's own, a capability won by a kernel bug is one over the host.
  char link[64] = "";
  if (attempt->stage->user_namespace == NULL) return unable(attempt, "unknown on the host");
  if (readlink("/proc/self/ns/user", link, sizeof link - 1) < 0) return refused(attempt, "/proc/self/ns/user");
  if (strcmp(link, attempt->stage->user_namespace) == 0) return worked(attempt, "the host's user namespace");
  errno = EPERM;
  return refused(attempt, "a user namespace of its own");
}
ATTACK(c49_user_namespace, "C49g", "user-namespace", "hold its ids in the host's user namespace", "user namespace", 0);

static enum outcome run_c49_oom_score(struct attempt* attempt) {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return refused(attempt, "oom_score_adj");
  return write(fd, "0", 1) == 1 ? worked(attempt, "others die first") : refused(attempt, "write");
}
ATTACK(c49_oom_score, "C49h", "oom-score", "let host processes die before it when memory runs out",
       "root filesystem, landlock", 0);
