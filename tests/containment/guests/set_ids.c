// Tries every way to leave a file or directory with the set-uid or set-gid bit, and prints for each "WAY done" or
// "WAY ERRNO". Done says only that the call was answered; the names are those of the ways, so the host can look.
//
//   set_ids DIRECTORY
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { kFchmodat2 = 452 };  // newer than these headers

static void tell(const char* way, long result) {
  if (result >= 0) {
    printf("%s done\n", way);
  } else {
    printf("%s %d\n", way, errno);
  }
}

static int make(const char* name) { return open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0700); }

static void by_chmod(void) {
  make("chmod-uid"), make("chmod-gid"), make("chmod-high"), make("fchmodat"), make("fchmodat2"), make("chmod-proc");
  tell("chmod-uid", syscall(SYS_chmod, "chmod-uid", 04755));
  tell("chmod-gid", syscall(SYS_chmod, "chmod-gid", 02755));
  tell("chmod-high", syscall(SYS_chmod, "chmod-high", 0x100006ed));  // 06755 and a bit that the kernel ignores
  tell("fchmod", syscall(SYS_fchmod, make("fchmod"), 06755));
  tell("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, "fchmodat", 06755));
  tell("fchmodat2", syscall(kFchmodat2, AT_FDCWD, "fchmodat2", 06755, 0));
  const int handle = open("chmod-proc", O_PATH | O_CLOEXEC);
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
  tell("chmod-proc", syscall(SYS_chmod, link, 06755));
}

static void by_creating(void) {
  tell("open", syscall(SYS_open, "open", O_CREAT | O_WRONLY, 06777));
  tell("creat", syscall(SYS_creat, "creat", 06777));
  tell("openat", syscall(SYS_openat, AT_FDCWD, "openat", O_CREAT | O_WRONLY, 06777));
  struct open_how how = {.flags = O_CREAT | O_WRONLY, .mode = 06777};
  tell("openat2", syscall(SYS_openat2, AT_FDCWD, "openat2", &how, sizeof how));
  const int nameless = (int)syscall(SYS_openat, AT_FDCWD, ".", O_TMPFILE | O_WRONLY, 06777);
  tell("tmpfile", nameless);
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", nameless);
  tell("tmpfile-link", linkat(AT_FDCWD, link, AT_FDCWD, "tmpfile", AT_SYMLINK_FOLLOW));
  tell("mknod", syscall(SYS_mknod, "mknod", S_IFREG | 06777, 0));
  tell("mknodat", syscall(SYS_mknodat, AT_FDCWD, "mknodat", S_IFREG | 06777, 0));
  tell("fifo", syscall(SYS_mknod, "fifo", S_IFIFO | 06777, 0));
}

static void by_directories(void) {
  tell("mkdir", syscall(SYS_mkdir, "mkdir", 06777));
  mkdir("mkdir-chmod", 0700);
  tell("mkdir-chmod", syscall(SYS_chmod, "mkdir-chmod", 02770));
  mkdir("mkdir-fchmod", 0700);
  tell("mkdir-fchmod", syscall(SYS_fchmod, open("mkdir-fchmod", O_RDONLY | O_CLOEXEC), 02770));
}

// What a socket is named with has the mode of the socket, which is an inode of its own.
static void by_socket(void) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  tell("socket-mode", syscall(SYS_fchmod, fd, 06777));
  struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "socket"};
  tell("socket-bind", bind(fd, (struct sockaddr*)&name, sizeof name));
}

int main(int argc, char** argv) {
  if (argc < 2 || chdir(argv[1]) != 0) return 2;
  umask(0);
  by_chmod();
  by_creating();
  by_directories();
  by_socket();
  // Ordinary work goes on: permissions, the sticky bit.
  tell("plain-chmod", chmod("chmod-uid", 0755));
  mkdir("plain", 0700);
  tell("plain-sticky", chmod("plain", 01777));
  const int made = open("plain-open", O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
  tell("plain-open", made);
  tell("plain-fchmod", fchmod(made, 0600));
  tell("plain-openat", openat(AT_FDCWD, "plain-openat", O_CREAT | O_WRONLY | O_CLOEXEC, 0777));
  tell("plain-mkdir", mkdir("plain-mkdir", 0755));
  puts("tried");
  return 0;
}
