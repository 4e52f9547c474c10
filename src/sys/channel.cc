#include "sys/channel.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include <fmt/format.h>

#include "sys/process.h"

namespace belljar::sys {
namespace {

// Not in linux-libc-dev 6.1, or not in any header.
constexpr std::int64_t kPidFs = 0x50494446;
constexpr std::int64_t kMessageQueues = 0x19800202;
constexpr std::array<std::int64_t, 14> kKernelFilesystems = {
    PROC_SUPER_MAGIC, SYSFS_MAGIC,   CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC,       TRACEFS_MAGIC,
    SECURITYFS_MAGIC, SELINUX_MAGIC, BPF_FS_MAGIC,       NSFS_MAGIC,          ANON_INODE_FS_MAGIC, EFIVARFS_MAGIC,
    kPidFs,           kMessageQueues};

}  // namespace

Expected<std::string> KindOfChannel(int fd) {
  const auto refuse = [&](std::string what) {
    return std::unexpected(Error{.step = fmt::format("hand over descriptor {}", fd),
                                 .message = std::move(what),
                                 .hint = "a channel is a pipe, a socket or a plain file"});
  };
  const int flags = fd < 0 ? -1 : ::fcntl(fd, F_GETFL);
  struct stat status{};
  if (flags < 0 || ::fstat(fd, &status) != 0) return refuse("it is not open");
  // SECURITY: such a one opens nothing by itself, but what is below it can be opened from it.
  if ((flags & O_PATH) != 0) return refuse("it is a place (O_PATH), not an open file");
  if (S_ISFIFO(status.st_mode)) return "pipe";
  if (S_ISSOCK(status.st_mode)) return "socket";
  if (S_ISDIR(status.st_mode)) return refuse("it is a directory, from which the host's files can be reached");
  if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)) return refuse("it is a terminal or another device");
  struct statfs filesystem{};
  if (!S_ISREG(status.st_mode) || ::fstatfs(fd, &filesystem) != 0 ||
      std::ranges::find(kKernelFilesystems, static_cast<std::int64_t>(filesystem.f_type)) != kKernelFilesystems.end()) {
    return refuse("it is an object of the kernel");
  }
  // SECURITY: the guest can open it again by /proc/self/fd, with all rights that the file gives: no mount and no rule
  // of Landlock is on the way to one that has no name anywhere.
  constexpr int kUnchanging = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = ::fcntl(fd, F_GET_SEALS);
  const bool writable = seals >= 0 && status.st_nlink == 0 && (seals & kUnchanging) != kUnchanging;
  if (writable && !IsReadWrite(fd)) {
    return std::unexpected(
        Error{.step = fmt::format("hand over descriptor {}", fd),
              .message = "it is a memory file that the guest could open again for writing",
              .hint = "seal it first with F_SEAL_WRITE, F_SEAL_SHRINK and F_SEAL_GROW, or open it for both"});
  }
  return "file";
}

bool IsReadWrite(int fd) { return (::fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR; }

}  // namespace belljar::sys
