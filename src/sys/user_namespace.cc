#include "sys/user_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "sys/process.h"

namespace belljar::sys {
namespace {

// Shares the memory of its maker, of which a copy would take its time, and touches nothing in it.
[[gnu::no_sanitize("address", "thread", "undefined")]] int HoldOpen(void* parent) {
  // Dies with its maker, and holds nothing of it that somebody waits to see closed.
  ::syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  ::syscall(SYS_close_range, 0, ~0U, 0);
  if (::syscall(SYS_getppid) != *static_cast<const pid_t*>(parent)) ::syscall(SYS_exit_group, 1);
  for (;;) ::syscall(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0);
}

// Holds a namespace open until it is pinned by a descriptor.
class Holder {
 public:
  Holder() {
    const BlockedSignals blocked;  // No handler of the host program shall run there.
    pid_ = ::clone(HoldOpen, stack_.data() + stack_.size(), CLONE_VM | CLONE_NEWUSER, &parent_);
  }
  ~Holder() {
    // One that can't be killed ends with this process; to wait for it would be to wait for ever.
    if (pid_ <= 0 || ::kill(pid_, SIGKILL) != 0) return;
    while (::waitpid(pid_, nullptr, __WALL) < 0 && errno == EINTR) {
    }
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  pid_t pid() const { return pid_; }

 private:
  alignas(16) std::array<char, 16 * 1024> stack_;
  pid_t parent_ = ::getpid();
  pid_t pid_ = -1;
};

bool WriteMap(pid_t pid, const char* name, unsigned from, unsigned to) {
  const base::UniqueFd fd(::open(fmt::format("/proc/{}/{}", pid, name).c_str(), O_WRONLY | O_CLOEXEC));
  const std::string line = fmt::format("{} {} 1", from, to);
  return fd.valid() && ::write(fd.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

}  // namespace

Expected<base::UniqueFd> MakeIdMap(uid_t file_uid, gid_t file_gid, uid_t seen_uid, gid_t seen_gid) {
  const Holder holder;
  base::UniqueFd fd;
  if (holder.pid() > 0 && WriteMap(holder.pid(), "uid_map", file_uid, seen_uid) &&
      WriteMap(holder.pid(), "gid_map", file_gid, seen_gid)) {
    fd.Reset(::open(fmt::format("/proc/{}/ns/user", holder.pid()).c_str(), O_RDONLY | O_CLOEXEC));
  }
  if (!fd.valid()) {
    return std::unexpected(Error{.step = "map the owner of a mounted directory",
                                 .message = std::strerror(errno),
                                 .hint = "user namespaces must be enabled: sysctl user.max_user_namespaces",
                                 .code = errno});
  }
  return fd;
}

}  // namespace belljar::sys
