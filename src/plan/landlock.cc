// Landlock rules: the same file view once more, by another mechanism.
#include <linux/landlock.h>

#include "plan/sections.h"
#include "sys/files.h"
#include "sys/kernel_constants.h"

namespace belljar::plan {
namespace {

constexpr std::uint64_t kExecute = LANDLOCK_ACCESS_FS_EXECUTE;
constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kFileOnly = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                                    LANDLOCK_ACCESS_FS_READ_FILE | BELLJAR_LANDLOCK_FS_TRUNCATE |
                                    BELLJAR_LANDLOCK_FS_IOCTL_DEV;

// SECURITY: not to /dev/zero where memory is only watched. A shared mapping of it is memory that stays when the process
// lets go of its pages, unseen; one that is open for reading maps private pages.
constexpr std::uint64_t kWriteDevice = LANDLOCK_ACCESS_FS_WRITE_FILE | BELLJAR_LANDLOCK_FS_TRUNCATE;

std::uint64_t HandledRights(int abi) {
  std::uint64_t rights = BELLJAR_LANDLOCK_FS_ABI1;
  if (abi >= 2) rights |= BELLJAR_LANDLOCK_FS_REFER;
  if (abi >= 3) rights |= BELLJAR_LANDLOCK_FS_TRUNCATE;
  if (abi >= 5) rights |= BELLJAR_LANDLOCK_FS_IOCTL_DEV;
  return rights;
}

class Rules {
 public:
  explicit Rules(Draft& draft) : draft_(draft), handled_(HandledRights(draft.request.facts.landlock_abi)) {}

  std::uint64_t handled() const { return handled_; }
  std::uint64_t all() const {
    // Everything but making devices, which no guest needs, and ioctls on devices, granted to the terminals alone.
    return handled_ & ~(LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK | BELLJAR_LANDLOCK_FS_IOCTL_DEV);
  }
  void Allow(std::string_view path, std::uint64_t rights, bool may_be_absent = false) {
    draft_.builder.Add(Op::kLandlockAllow, {.text = path,
                                            .value = rights & handled_,
                                            .more_value = static_cast<std::uint64_t>(Reach::kDirect),
                                            .slot = may_be_absent ? 1 : 0});
  }
  /// What others may have made: a link on the way to it is an error. So are rights that only directories have on a
  /// file.
  void AllowTree(const std::string& source, std::string_view inside, std::uint64_t rights) {
    const bool directory = sys::Status(source).kind == sys::FileKind::kDirectory;
    draft_.builder.Add(Op::kLandlockAllow, {.text = inside,
                                            .value = (directory ? rights : rights & kFileOnly) & handled_,
                                            .more_value = static_cast<std::uint64_t>(Reach::kGuarded),
                                            .slot = 0});
  }

 private:
  Draft& draft_;
  std::uint64_t handled_;
};

void AllowOwnRoot(Draft& draft, Rules& rules) {
  const Policy& policy = draft.request.policy;
  rules.Allow("/", LANDLOCK_ACCESS_FS_READ_DIR);
  if (policy.files.system == SystemFiles::kUsr) {
    // Links of a merged /usr lead to the same rule; separate directories get their own.
    for (const char* path : {"/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"}) {
      if (sys::LinkStatus(path).kind == sys::FileKind::kDirectory) rules.Allow(path, kRead | kExecute);
    }
  }
  rules.Allow("/etc", kRead | kExecute);
  rules.Allow("/proc", kRead);
  // All in there are devices of the kind that tells and keeps nothing; ioctls are for terminals.
  if (draft.out.watched.memory) {
    rules.Allow("/dev", kRead);
    for (const char* path : {"/dev/null", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/pts"}) {
      rules.Allow(path, kWriteDevice);
    }
  } else {
    rules.Allow("/dev", kRead | kWriteDevice);
  }
  rules.Allow("/dev/tty", BELLJAR_LANDLOCK_FS_IOCTL_DEV);
  rules.Allow("/dev/pts", BELLJAR_LANDLOCK_FS_IOCTL_DEV);
  rules.Allow("/tmp", rules.all());
  if (!sys::IsWithin(draft.workdir, "/tmp")) rules.Allow(draft.workdir, rules.all());
  for (const Brought& brought : draft.program.brought) rules.AllowTree(brought.path, brought.path, kRead | kExecute);
}

// Over the host's tree: only what programs need to start, and nothing of /proc but the guest's own entry.
void AllowHostTree(Draft& draft, Rules& rules) {
  for (const char* path : {"/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32"}) {
    rules.Allow(path, kRead | kExecute, true);
  }
  for (const char* path : {"/etc/alternatives", "/etc/ssl/certs", "/etc/java-17-openjdk", "/etc/java-21-openjdk",
                           "/etc/perl", "/etc/fonts", "/etc/python3", "/etc/python3.11"}) {
    rules.Allow(path, kRead, true);
  }
  constexpr std::uint64_t kReadFile = LANDLOCK_ACCESS_FS_READ_FILE;
  for (const char* path : {"/etc/ld.so.cache", "/etc/localtime", "/etc/nsswitch.conf", "/etc/passwd", "/etc/group",
                           "/etc/services", "/etc/protocols", "/proc/meminfo", "/proc/cpuinfo", "/proc/stat",
                           "/proc/filesystems", "/proc/sys/vm/overcommit_memory"}) {
    rules.Allow(path, kReadFile, true);
  }
  for (const char* path : {"/dev/null", "/dev/full", "/dev/random", "/dev/urandom"}) {
    rules.Allow(path, kReadFile | kWriteDevice);
  }
  // The guest's own, or none: it has a session of its own, and nothing in /dev/pts is allowed.
  rules.Allow("/dev/tty", kReadFile | kWriteDevice | BELLJAR_LANDLOCK_FS_IOCTL_DEV);
  rules.Allow("/dev/zero", draft.out.watched.memory ? kReadFile : kReadFile | kWriteDevice);
  rules.Allow(draft.out.private_directory, rules.all());
  for (const Brought& brought : draft.program.brought) rules.AllowTree(brought.path, brought.path, kRead | kExecute);
}

}  // namespace

void AddLandlock(Draft& draft) {
  const int abi = draft.request.facts.landlock_abi;
  if (abi == 0 || draft.choice.level < Level::kKernel) return;
  Rules rules(draft);
  const bool bare = draft.choice.form == Form::kLandlockOnly;
  std::uint64_t network = 0;
  if (bare && abi >= 4) network = BELLJAR_LANDLOCK_NET_BIND_TCP | BELLJAR_LANDLOCK_NET_CONNECT_TCP;
  int scopes = 0;
  if (abi >= 6) scopes = BELLJAR_LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | BELLJAR_LANDLOCK_SCOPE_SIGNAL;
  draft.builder.Add(Op::kLandlockRules, {.value = rules.handled(), .more_value = network, .slot = scopes});
  if (bare) {
    AllowHostTree(draft, rules);
  } else {
    AllowOwnRoot(draft, rules);
  }
  for (const Mount& mount : draft.request.policy.files.mounts) {
    rules.AllowTree(mount.source, mount.target, mount.access == Access::kReadWrite ? rules.all() : kRead | kExecute);
  }
}

}  // namespace belljar::plan
