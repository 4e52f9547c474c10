// Changes what can be changed of a file or directory without writing to it: mode, times, extended attributes, flags.
// Only through descriptors opened for reading, or by its path. Prints for each way "WAY done" or "WAY ERRNO".
//
//   attributes PATH
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

enum { kFchmodat2 = 452, kSetxattrat = 463, kFileSetattr = 469 };  // newer than these headers

static void tell(const char* way, long result) {
  if (result >= 0) {
    printf("%s done\n", way);
  } else {
    printf("%s %d\n", way, errno);
  }
}

static void change_mode(const char* path, int fd, int handle) {
  tell("chmod", syscall(SYS_chmod, path, 0711));
  tell("fchmod", syscall(SYS_fchmod, fd, 0711));
  tell("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, path, 0711));
  tell("fchmodat2", syscall(kFchmodat2, AT_FDCWD, path, 0711, 0));
  tell("fchmodat2-empty", syscall(kFchmodat2, handle, "", 0711, AT_EMPTY_PATH));
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
  tell("chmod-proc", syscall(SYS_chmod, link, 0711));
}

static void change_owner(const char* path, int fd, int handle) {
  const uid_t uid = getuid();
  const gid_t gid = getgid();
  tell("chown", syscall(SYS_chown, path, uid, gid));
  tell("lchown", syscall(SYS_lchown, path, uid, gid));
  tell("fchown", syscall(SYS_fchown, fd, uid, gid));
  tell("fchownat", syscall(SYS_fchownat, handle, "", uid, gid, AT_EMPTY_PATH));
}

static void change_times(const char* path, int fd, int handle) {
  const struct timespec times[2] = {{1, 0}, {1, 0}};
  const struct timeval coarse[2] = {{1, 0}, {1, 0}};
  const struct utimbuf old = {1, 1};
  tell("utimensat", syscall(SYS_utimensat, AT_FDCWD, path, times, 0));
  tell("futimens", syscall(SYS_utimensat, fd, NULL, times, 0));
  tell("utimensat-empty", syscall(SYS_utimensat, handle, "", times, AT_EMPTY_PATH));
#ifdef SYS_utime
  tell("utime", syscall(SYS_utime, path, &old));
  tell("utimes", syscall(SYS_utimes, path, coarse));
  tell("futimesat", syscall(SYS_futimesat, AT_FDCWD, path, coarse));
#else
  (void)old, (void)coarse;
#endif
}

static void change_xattrs(const char* path, int fd) {
  static const char kName[] = "user.belljar";
  struct {
    uint64_t value;
    uint32_t size;
    uint32_t flags;
  } args = {(uintptr_t)"1", 1, 0};
  tell("setxattr", syscall(SYS_setxattr, path, kName, "1", 1, 0));
  tell("lsetxattr", syscall(SYS_lsetxattr, path, kName, "1", 1, 0));
  tell("fsetxattr", syscall(SYS_fsetxattr, fd, kName, "1", 1, 0));
  tell("setxattrat", syscall(kSetxattrat, AT_FDCWD, path, 0, kName, &args, sizeof args));
  tell("removexattr", syscall(SYS_removexattr, path, "user.given"));
  tell("fremovexattr", syscall(SYS_fremovexattr, fd, "user.given"));
}

static void change_flags(const char* path, int fd) {
  int flags = FS_NODUMP_FL;
  tell("FS_IOC_SETFLAGS", ioctl(fd, FS_IOC_SETFLAGS, &flags));
  // The kernel reads 32 bits of the number: a filter that compares 64 is walked around.
  tell("FS_IOC_SETFLAGS-high", syscall(SYS_ioctl, fd, FS_IOC_SETFLAGS | 0x100000000UL, &flags));
  struct fsxattr attr = {.fsx_xflags = FS_XFLAG_NODUMP};
  tell("FS_IOC_FSSETXATTR", ioctl(fd, FS_IOC_FSSETXATTR, &attr));
  long version = 1234;
  tell("FS_IOC_SETVERSION", ioctl(fd, FS_IOC_SETVERSION, &version));
  tell("EXT4_IOC_SETVERSION", ioctl(fd, _IOW('f', 4, long), &version));
  const struct {
    uint64_t xflags;
    uint32_t rest[4];
  } file_attr = {FS_XFLAG_NODUMP, {0}};
  tell("file_setattr", syscall(kFileSetattr, AT_FDCWD, path, &file_attr, sizeof file_attr, 0));
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
  const int handle = open(argv[1], O_PATH | O_CLOEXEC);
  if (fd < 0 || handle < 0) return 3;
  change_mode(argv[1], fd, handle);
  change_owner(argv[1], fd, handle);
  change_times(argv[1], fd, handle);
  change_xattrs(argv[1], fd);
  change_flags(argv[1], fd);
  puts("tried");
  return 0;
}
