#include "doctor/probe_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include <fmt/format.h>

#include "doctor/probe_child.h"
#include "doctor/probe_idmap.h"
#include "doctor/probe_userns.h"

namespace belljar::doctor {
namespace {

int FsOpen(const char* type) { return static_cast<int>(::syscall(SYS_fsopen, type, FSOPEN_CLOEXEC)); }
long MoveMount(int from, int to, const char* path) {
  return ::syscall(SYS_move_mount, from, "", to, path, MOVE_MOUNT_F_EMPTY_PATH);
}

// The same calls in the same order as a sandbox's root: a tmpfs made by fd, the host's tree cloned onto it, read-only.
Finding BuildRoot() {
  const int context = FsOpen("tmpfs");
  if (context < 0) return Finding::Failed("fsopen");
  if (::syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
    return Finding::Failed("fsconfig");
  const int root = static_cast<int>(::syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0));
  if (root < 0) return Finding::Failed("fsmount");
  if (::mkdirat(root, "host", 0700) != 0) return Finding::Failed("mkdir");
  if (MoveMount(root, AT_FDCWD, "/") != 0) return Finding::Failed("move_mount");
  const int tree =
      static_cast<int>(::syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
  if (tree < 0) return Finding::Failed("open_tree");
  mount_attr read_only{.attr_set = MOUNT_ATTR_RDONLY};
  const auto make_read_only = [&](int fd) {
    return ::syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &read_only, sizeof read_only);
  };
  if (make_read_only(tree) != 0) return Finding::Failed("mount_setattr");
  if (MoveMount(tree, root, "host") != 0) return Finding::Failed("move_mount");
  if (make_read_only(root) != 0) return Finding::Failed("mount_setattr");
  if (::mkdirat(root, "late", 0700) == 0 || errno != EROFS) return Finding::Failed("refuse a write", errno);
  return Finding::Passed();
}

Probe ProbeMountApi(Way way) {
  Probe probe{.name = "mount api",
              .group = ProbeGroup::kFiles,
              .purpose = "the sandbox's root is built by file descriptor: no path can be swapped meanwhile"};
  if (way == Way::kNone) {
    probe.detail = kNeedsUserNamespace;
    return probe;
  }
  const Trial trial = TryInNamespaces(way, CLONE_NEWNS, BuildRoot);
  if (trial.passed()) {
    probe.state = ProbeState::kOk;
    probe.detail = "fsmount, open_tree, move_mount, mount_setattr";
  } else {
    probe.detail = trial.Text();
    probe.fix = trial.error == ENOSYS ? "boot Linux 5.12 or newer, or let the filter over this process allow the call"
                                      : "see dmesg or the audit log for what refused it";
  }
  return probe;
}

// Covers a directory that nearly every system has with a tmpfs and goes there.
Finding EnterTmpfs() {
  for (const char* path : {"/tmp", "/var", "/usr", "/proc"}) {
    if (::mount("none", path, "tmpfs", 0, nullptr) == 0 && ::chdir(path) == 0) return Finding::Passed();
  }
  return Finding::Failed("mount a tmpfs");
}

Finding UseOverlay() {
  if (const Finding entered = EnterTmpfs(); entered.step != nullptr) return entered;
  for (const char* name : {"lower", "upper", "work", "merged"}) {
    if (::mkdir(name, 0700) != 0) return Finding::Failed("mkdir");
  }
  if (::mkdir("lower/file", 0700) != 0) return Finding::Failed("mkdir");
  // userxattr: without it overlayfs keeps its notes in trusted.*, which a user namespace may not write.
  if (::mount("none", "merged", "overlay", 0, "lowerdir=lower,upperdir=upper,workdir=work,userxattr") != 0) {
    return Finding::Failed("mount overlay");
  }
  if (::rmdir("merged/file") != 0) return Finding::Failed("delete in the upper layer");
  if (::access("lower/file", F_OK) != 0) return Finding::Failed("keep the lower layer");
  return Finding::Passed();
}

Probe ProbeOverlay(Way way) {
  Probe probe{.name = "overlayfs",
              .group = ProbeGroup::kFiles,
              .purpose = "copy-on-write layers over a directory, without root"};
  if (way == Way::kNone) {
    probe.detail = kNeedsUserNamespace;
    return probe;
  }
  const Trial trial = TryInNamespaces(way, CLONE_NEWNS, UseOverlay);
  if (trial.passed()) {
    probe.state = ProbeState::kOk;
    return probe;
  }
  probe.detail = trial.Text();
  if (trial.error == ENODEV) {
    probe.fix = "as root: modprobe overlay";
  } else if (trial.error == EPERM || trial.error == EINVAL) {
    probe.fix = "boot Linux 5.11 or newer: before it, overlayfs could not be mounted in a user namespace";
  }
  return probe;
}

Probe ProbeIdmap(std::string name, std::string purpose, const Trial& trial) {
  Probe probe{.name = std::move(name), .group = ProbeGroup::kFiles, .purpose = std::move(purpose)};
  if (trial.passed()) {
    probe.state = ProbeState::kOk;
    return probe;
  }
  probe.detail = trial.Text();
  if (trial.FailedAt(kStepIdmap) && trial.error == EINVAL) {
    probe.detail = "this filesystem does not support it; belljar changes the owner of files instead";
    probe.fix = "boot Linux 6.3 or newer for tmpfs (5.12: ext4, XFS; 5.15: Btrfs; 5.19: overlayfs)";
  }
  return probe;
}

Probes ProbeIdmaps(Way way) {
  Probe tmpfs{.name = "idmapped tmpfs",
              .group = ProbeGroup::kFiles,
              .purpose = "files in private filesystems belong to the right user on both sides",
              .detail = kNeedsUserNamespace};
  if (way != Way::kNone) tmpfs = ProbeIdmap(tmpfs.name, tmpfs.purpose, TryIdmappedTmpfs(way));
  Probe workdir{.name = "idmapped workdir",
                .group = ProbeGroup::kFiles,
                .purpose = "when root: a mounted directory stays usable on both sides (the current one was tried)",
                .detail = "only root needs it: an unprivileged user's sandbox has that user's own id"};
  if (way == Way::kDirect) {
    workdir = ProbeIdmap(workdir.name, workdir.purpose, TryIdmappedCwd());
  } else {
    workdir.state = ProbeState::kOk;
  }
  return {tmpfs, workdir};
}

Probe ProbeOpenat2() {
  const Trial trial = TryInChild(0, [] {
    open_how how{.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    if (::syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof how) < 0) return Finding::Failed("openat2");
    how.resolve = RESOLVE_BENEATH;
    if (::syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof how) >= 0) return Finding::Failed("stay beneath", 0);
    return errno == EXDEV ? Finding::Passed() : Finding::Failed("stay beneath");
  });
  return {.name = "openat2",
          .group = ProbeGroup::kFiles,
          .state = trial.passed() ? ProbeState::kOk : ProbeState::kMissing,
          .purpose = "paths that a guest made are followed without leaving its root",
          .detail = trial.Text(),
          .fix = trial.passed() ? "" : "boot Linux 5.6 or newer, or let the filter over this process allow the call"};
}

Probe ProbeCloseRange() {
  const Trial trial = TryInChild(0, [] {
    const int fd = ::open("/", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return Finding::Failed("open");
    if (::syscall(SYS_close_range, fd, fd, 0U) != 0) return Finding::Failed("close_range");
    return ::fcntl(fd, F_GETFD) < 0 ? Finding::Passed() : Finding::Failed("close_range", 0);
  });
  return {.name = "close_range",
          .group = ProbeGroup::kFiles,
          .state = trial.passed() ? ProbeState::kOk : ProbeState::kMissing,
          .purpose = "no file that the caller had open leaks into the sandbox, however many there are",
          .detail = trial.Text(),
          .fix = trial.passed() ? "" : "boot Linux 5.9 or newer, or let the filter over this process allow the call"};
}

}  // namespace

Probes ProbeFiles(Way way) {
  Probes probes{ProbeMountApi(way)};
  for (Probe& probe : ProbeIdmaps(way)) probes.push_back(std::move(probe));
  probes.push_back(ProbeOverlay(way));
  probes.push_back(ProbeOpenat2());
  probes.push_back(ProbeCloseRange());
  return probes;
}

}  // namespace belljar::doctor
