// Describes the wall as it is seen from inside, a line each, in words that are the same for every run with the same
// wall:
//
//   wall MARKER HOST_NAMESPACES…
//
// It goes into the file MARKER and not to standard output, so that a test knows that a guest ran, and behind which
// wall, whatever becomes of its output. MARKER is empty until the whole wall is told: the words are written beside it,
// to MARKER.part, and take its name, since a write of several pages can be cut short by a kill. HOST_NAMESPACES are
// "net:[4026531840]" and the like: the ones of the host. Ends with 7.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

static void status_lines(void) {
  static const char* const wanted[] = {
      "Groups:", "CapInh:",     "CapPrm:",  "CapEff:",          "CapBnd:", "CapAmb:", "SigBlk:", "SigIgn:",
      "Umask:",  "NoNewPrivs:", "Seccomp:", "Seccomp_filters:", "NStgid:", "Uid:",    "Gid:"};
  FILE* file = fopen("/proc/self/status", "re");
  char line[512];
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    for (unsigned i = 0; i < sizeof wanted / sizeof *wanted; ++i) {
      if (strncmp(line, wanted[i], strlen(wanted[i])) == 0) fputs(line, stdout);
    }
  }
  if (file != NULL) fclose(file);
}

// Without the first three fields, which number the mounts of the host.
static void mounts(void) {
  FILE* file = fopen("/proc/self/mountinfo", "re");
  char line[8192];
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    char* at = line;
    for (int i = 0; i < 3 && at != NULL; ++i) at = strchr(at + 1, ' ');
    if (at != NULL) printf("mount%s", at);
  }
  if (file != NULL) fclose(file);
}

static void namespaces(int count, char** of_the_host) {
  static const char* const kinds[] = {"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"};
  for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    char path[64];
    char name[64] = "?";
    snprintf(path, sizeof path, "/proc/self/ns/%s", kinds[i]);
    const ssize_t length = readlink(path, name, sizeof name - 1);
    if (length > 0) name[length] = '\0';
    int shared = 0;
    for (int at = 0; at < count; ++at) shared |= strcmp(name, of_the_host[at]) == 0;
    printf("namespace %s %s\n", kinds[i], length < 0 ? "unknown" : shared ? "of the host" : "own");
  }
}

static void limits(void) {
  for (int resource = 0; resource < RLIM_NLIMITS; ++resource) {
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) == 0) {
      printf("rlimit %d %lld %lld\n", resource, (long long)limit.rlim_cur, (long long)limit.rlim_max);
    }
  }
}

static void descriptors(void) {
  printf("descriptors beside the marker:");
  for (int fd = 0; fd < 256; ++fd) {
    if (fd != fileno(stdout) && fcntl(fd, F_GETFD) >= 0) printf(" %d", fd);
  }
  printf("\n");
}

// What must not work; the answer is part of the wall.
static void attempts(void) {
  static const char* const readable[] = {"/etc/shadow", "/root", "/var/log", "/proc/sys/kernel/core_pattern",
                                         "/sys/kernel"};
  for (unsigned i = 0; i < sizeof readable / sizeof *readable; ++i) {
    const int fd = open(readable[i], O_RDONLY | O_CLOEXEC);
    printf("open %s %d\n", readable[i], fd < 0 ? errno : 0);
    if (fd >= 0) close(fd);
  }
  static const char* const writable[] = {"/usr", "/etc", "/", "/dev", "/var/tmp"};
  for (unsigned i = 0; i < sizeof writable / sizeof *writable; ++i) {
    // A file without a name: where it can be made, nothing is left of it.
    const int fd = open(writable[i], O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    printf("create in %s %d\n", writable[i], fd < 0 ? errno : 0);
    if (fd >= 0) close(fd);
  }
  static const int families[] = {AF_UNIX, AF_INET, AF_NETLINK, AF_PACKET};
  for (unsigned i = 0; i < sizeof families / sizeof *families; ++i) {
    const int fd = socket(families[i], SOCK_DGRAM, 0);
    printf("socket %d %d\n", families[i], fd < 0 ? errno : 0);
    if (fd >= 0) close(fd);
  }
  printf("dumpable %d\n", prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
  printf("session %d\n", getsid(0) == getpid());
}

int main(int argc, char** argv) {
  char part[4096];
  if (argc < 2 || snprintf(part, sizeof part, "%s.part", argv[1]) >= (int)sizeof part) return 2;
  if (freopen(argv[1], "we", stdout) == NULL || freopen(part, "we", stdout) == NULL) return 2;
  status_lines();
  namespaces(argc - 2, argv + 2);
  mounts();
  limits();
  descriptors();
  attempts();
  struct utsname name;
  if (uname(&name) == 0) printf("hostname %s\n", name.nodename);
  FILE* cgroup = fopen("/proc/self/cgroup", "re");
  char line[1024];
  while (cgroup != NULL && fgets(line, sizeof line, cgroup) != NULL) printf("cgroup %s", line);
  if (cgroup != NULL) fclose(cgroup);
  printf("environment");
  for (char** at = environ; *at != NULL; ++at) printf(" %s", *at);
  printf("\n");
  return fflush(stdout) == 0 && rename(part, argv[1]) == 0 ? 7 : 3;
}
