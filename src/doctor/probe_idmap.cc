#include "doctor/probe_idmap.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

namespace belljar::doctor {
namespace {

// Inside a user namespace of ours only id 0 exists, so no other can be mapped.
constexpr char kMap[] = "0 0 1";

// "/proc/<pid>/<name>" without the heap.
struct ProcPath {
  char text[64] = "/proc/";
  ProcPath(long pid, const char* name) {
    char digits[24];
    int count = 0;
    for (; pid > 0; pid /= 10) digits[count++] = static_cast<char>('0' + pid % 10);
    char* out = text + std::strlen(text);
    while (count > 0) *out++ = digits[--count];
    *out++ = '/';
    std::memcpy(out, name, std::strlen(name) + 1);  // the two names used are short
  }
};

bool WriteMap(long pid, const char* name) {
  const int fd = ::open(ProcPath(pid, name).text, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = ::write(fd, kMap, sizeof kMap - 1) == static_cast<ssize_t>(sizeof kMap - 1);
  ::close(fd);
  return written;
}

// A user namespace exists only as long as a process or an open file holds it: a short-lived child makes it, the
// returned file keeps it.
int OpenMappedNamespace() {
  const long maker = RawFork(CLONE_NEWUSER);
  if (maker < 0) return -1;
  if (maker == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  int fd = -1;
  if (WriteMap(maker, "uid_map") && WriteMap(maker, "gid_map")) {
    fd = ::open(ProcPath(maker, "ns/user").text, O_RDONLY | O_CLOEXEC);
  }
  const int saved = errno;
  ::kill(static_cast<pid_t>(maker), SIGKILL);
  ::waitpid(static_cast<pid_t>(maker), nullptr, __WALL);
  errno = saved;
  return fd;
}

Finding MapMount(int mount) {
  const int user = OpenMappedNamespace();
  if (user < 0) return Finding::Failed("make a user namespace with a map");
  mount_attr attr{.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = static_cast<std::uint64_t>(user)};
  if (::syscall(SYS_mount_setattr, mount, "", AT_EMPTY_PATH, &attr, sizeof attr) != 0) {
    return Finding::Failed(kStepIdmap);
  }
  return Finding::Passed();
}

}  // namespace

Trial TryIdmappedTmpfs(Way way) {
  return TryInNamespaces(way, CLONE_NEWNS, [] {
    const int context = static_cast<int>(::syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC));
    if (context < 0) return Finding::Failed("fsopen");
    if (::syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
      return Finding::Failed("fsconfig");
    }
    const int mount = static_cast<int>(::syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0));
    if (mount < 0) return Finding::Failed("fsmount");
    return MapMount(mount);
  });
}

Trial TryIdmappedCwd() {
  return TryInNamespaces(Way::kDirect, CLONE_NEWNS, [] {
    const int tree = static_cast<int>(::syscall(SYS_open_tree, AT_FDCWD, ".", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
    if (tree < 0) return Finding::Failed("open_tree");
    return MapMount(tree);
  });
}

}  // namespace belljar::doctor
