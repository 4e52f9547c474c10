// Builds the guest's file view by descriptor: open_tree, fsmount, move_mount. No path of the host is resolved inside
// the new root and no path of the guest outside of it.
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail/context.h"

namespace belljar::jail {
namespace {

const char* Relative(const char* path) {
  while (*path == '/') ++path;
  return *path == '\0' ? "." : path;
}

// SECURITY: a directory that the guest can write may be mounted below the new root, so each lookup refuses symlinks and
// may not leave the root: a planted link can't turn a mount target into a path of the host.
constexpr uint64_t kNoLinks = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
// To hide something, a link is followed, inside the root: what it leads to is what must not be seen.
constexpr uint64_t kLinksInside = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;

int OpenInRoot(const Context& context, const char* path, uint64_t flags, uint64_t resolve = kNoLinks) {
  struct open_how how = {};
  how.flags = flags | O_CLOEXEC;
  how.resolve = resolve;
  return static_cast<int>(syscall(SYS_openat2, context.root, Relative(path), &how, sizeof how));
}

// Opens the directory that holds `path`; *last is set to its last component.
int OpenParent(const Context& context, const char* path, const char** last) {
  char parent[4096];
  const char* slash = strrchr(path, '/');
  *last = slash == nullptr ? path : slash + 1;
  const size_t length = slash == nullptr ? 0 : static_cast<size_t>(slash - path);
  if (length >= sizeof parent) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(parent, path, length);
  parent[length] = '\0';
  return OpenInRoot(context, parent, O_PATH | O_DIRECTORY);
}

int CloseKeepErrno(int fd, int result) {
  const int saved = errno;
  close(fd);
  errno = saved;
  return result;
}

int Attach(Context& context, int tree, const char* target, plan::Reach reach) {
  context.detail = 10;
  if (reach == plan::Reach::kDirect) {
    return CloseKeepErrno(tree, move_mount(tree, "", context.root, Relative(target), MOVE_MOUNT_F_EMPTY_PATH));
  }
  const int at = OpenInRoot(context, target, O_PATH);
  if (at < 0) return CloseKeepErrno(tree, -1);
  context.detail = 11;
  const int result = move_mount(tree, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
  CloseKeepErrno(at, 0);
  return CloseKeepErrno(tree, result);
}

// Options are pairs of strings one after the other, ended by an empty one.
int NewFilesystem(Context& context, const char* type, const char* options, uint64_t attributes) {
  context.detail = 0;
  const int fs = fsopen(type, FSOPEN_CLOEXEC);
  if (fs < 0) return -1;
  for (const char* key = options; *key != '\0';) {
    const char* value = key + strlen(key) + 1;
    context.detail = 1;
    if (fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0) != 0) return CloseKeepErrno(fs, -1);
    key = value + strlen(value) + 1;
  }
  context.detail = 2;
  if (fsconfig(fs, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) return CloseKeepErrno(fs, -1);
  context.detail = 3;
  const int mount = fsmount(fs, FSMOUNT_CLOEXEC, static_cast<unsigned>(attributes));
  return CloseKeepErrno(fs, mount);
}

int NewRoot(Context& context, const plan::Step& step) {
  context.root =
      NewFilesystem(context, "tmpfs", plan::Text(context.plan, step.text), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  if (context.root < 0) return -1;
  // A caller that shares nothing with its group would build a root that the guest can't read.
  umask(0);
  context.umask = 022;
  // Attached over the host's /proc, the one directory no mount may come from, so that every source stays reachable.
  // Init writes its own id maps late, when the sandbox's /proc is read-only: the host's, still open, knows it as well.
  context.detail = 4;
  context.proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (context.proc < 0) return -1;
  context.detail = 5;
  return move_mount(context.root, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH);
}

// The same by paths, for what Belljar itself names and no guest can have touched: a tree of its own, which open_tree
// makes and move_mount dissolves again, costs more than the mount.
int BindDirect(Context& context, const plan::Step& step) {
  context.in_proc = false;
  if (fchdir(context.root) != 0) return -1;
  const char* target = Relative(plan::Text(context.plan, step.text));
  context.detail = 1;
  if (mount(plan::Text(context.plan, step.more), target, nullptr, MS_BIND | MS_REC, nullptr) != 0) return -1;
  struct mount_attr attributes = {};
  attributes.attr_set = step.value;
  context.detail = 2;
  return mount_setattr(AT_FDCWD, target, AT_RECURSIVE, &attributes, sizeof attributes);
}

int Bind(Context& context, const plan::Step& step) {
  if (static_cast<plan::Reach>(step.more_value) == plan::Reach::kDirect && step.slot < 0) {
    return BindDirect(context, step);
  }
  context.detail = 0;
  constexpr unsigned kClone = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | static_cast<unsigned>(AT_RECURSIVE);
  const char* source = plan::Text(context.plan, step.more);
  int tree = -1;
  if (static_cast<plan::Reach>(step.more_value) == plan::Reach::kDirect) {
    tree = open_tree(AT_FDCWD, source, kClone);
  } else {
    // SECURITY: an earlier guest may have put a link where the source was, or does so right now.
    struct open_how how = {};
    how.flags = O_PATH | O_CLOEXEC;
    how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    const auto fd = static_cast<int>(syscall(SYS_openat2, AT_FDCWD, source, &how, sizeof how));
    if (fd < 0) return -1;
    tree = open_tree(fd, "", kClone | static_cast<unsigned>(AT_EMPTY_PATH));
    CloseKeepErrno(fd, 0);
  }
  if (tree < 0) return -1;
  struct mount_attr attributes = {};
  attributes.attr_set = step.value;
  context.detail = 1;
  if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes) != 0) {
    return CloseKeepErrno(tree, -1);
  }
  if (step.slot >= 0) {
    struct mount_attr idmap = {};
    idmap.attr_set = MOUNT_ATTR_IDMAP;
    idmap.userns_fd = static_cast<uint64_t>(context.fds[step.slot]);
    context.detail = 2;
    if (mount_setattr(tree, "", AT_EMPTY_PATH, &idmap, sizeof idmap) != 0) return CloseKeepErrno(tree, -1);
  }
  return Attach(context, tree, plan::Text(context.plan, step.text), static_cast<plan::Reach>(step.more_value));
}

int MountNew(Context& context, const plan::Step& step, const char* type, const char* options, uint64_t attributes) {
  const int mount = NewFilesystem(context, type, options, attributes);
  if (mount < 0) return -1;
  return Attach(context, mount, plan::Text(context.plan, step.text), plan::Reach::kGuarded);
}

int Proc(Context& context, const plan::Step& step) {
  constexpr uint64_t kFlags = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
  // hidepid: init is not dumpable, so the guest does not even see it.
  static constexpr char kOptions[] = "hidepid\0invisible\0";
  return MountNew(context, step, "proc", kOptions, kFlags);
}

constexpr uint64_t kTerminalFlags = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;

// Every devpts mount is an instance of its own since Linux 4.7: the host's terminals are not in it.
int Devpts(Context& context, const plan::Step& step) {
  return MountNew(context, step, "devpts", plan::Text(context.plan, step.more), kTerminalFlags);
}

// SECURITY: who can name a terminal can read what is typed there, stop its output and have it send signals. The
// commands of a live sandbox are one user; so the terminals that stewards make have no name inside.
int Terminals(Context& context, const plan::Step& step) {
  context.terminals = NewFilesystem(context, "devpts", plan::Text(context.plan, step.more), kTerminalFlags);
  return context.terminals < 0 ? -1 : 0;
}

int MaskSource(Context& context, const char* path) {
  if (mkdirat(context.root, Relative(path), 0) != 0) return -1;
  context.detail = 1;
  const int tree = open_tree(context.root, Relative(path), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (tree < 0) return -1;
  struct mount_attr attributes = {};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NODEV;
  context.detail = 2;
  if (mount_setattr(tree, "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0) return CloseKeepErrno(tree, -1);
  return Attach(context, tree, path, plan::Reach::kDirect);
}

// As below, for fixed names in the sandbox's own fresh /proc, by path and in one call: there are dozens of them, and
// each tree that open_tree clones costs a mount namespace of its own.
int MaskFixed(Context& context, const char* path, const char* source) {
  char from[128];
  if (strlen(source) + sizeof ".." > sizeof from || strncmp(path, "/proc/", 6) != 0) {
    errno = EINVAL;
    return -1;
  }
  if (!context.in_proc) {  // Paths of one part are found faster, and no link can be in them.
    if (fchdir(context.root) != 0 || chdir("proc") != 0) return -1;
    context.in_proc = true;
  }
  memcpy(from, "..", 2);
  memcpy(from + 2, source, strlen(source) + 1);
  return mount(from, path + 6, nullptr, MS_BIND, nullptr) == 0 || errno == ENOENT ? 0 : -1;
}

// Covers the step's path with a clone of a mount that is read-only already: /dev/null, or the empty directory.
int Mask(Context& context, const plan::Step& step) {
  const char* path = plan::Text(context.plan, step.text);
  auto cover = static_cast<plan::Cover>(step.value);
  int at = -1;
  if (cover == plan::Cover::kWhatFits || cover == plan::Cover::kPresent) {
    // SECURITY: what has to be there and is not has been moved: somewhere else it would be seen.
    const bool optional = cover == plan::Cover::kWhatFits;
    at = OpenInRoot(context, path, O_PATH, optional ? kLinksInside : kNoLinks);
    if (at < 0) return errno == ENOENT && optional ? 0 : -1;
    struct stat status;
    context.detail = 1;
    if (fstat(at, &status) != 0) return CloseKeepErrno(at, -1);
    cover = S_ISDIR(status.st_mode) ? plan::Cover::kDirectory : plan::Cover::kFile;
  }
  context.detail = 2;
  const char* source = cover == plan::Cover::kFile ? "/dev/null" : plan::Text(context.plan, step.more);
  if (at < 0) return MaskFixed(context, path, source);
  const int tree = open_tree(context.root, Relative(source), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (tree < 0) return CloseKeepErrno(at, -1);
  context.detail = 3;
  const int result = move_mount(tree, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
  CloseKeepErrno(at, 0);
  return CloseKeepErrno(tree, result);
}

int MakeMountPoint(int directory, const char* name, uint64_t is_file) {
  const int result = is_file == 0 ? mkdirat(directory, name, 0755) : mknodat(directory, name, S_IFREG | 0444, 0);
  return result != 0 && errno == EEXIST ? 0 : result;
}

int MountPoint(Context& context, const plan::Step& step) {
  const char* path = plan::Text(context.plan, step.text);
  if (static_cast<plan::Reach>(step.more_value) == plan::Reach::kDirect) {
    return MakeMountPoint(context.root, Relative(path), step.value);
  }
  const char* last = nullptr;
  const int parent = OpenParent(context, path, &last);
  if (parent < 0) return -1;
  context.detail = 1;
  return CloseKeepErrno(parent, MakeMountPoint(parent, last, step.value));
}

int Symlink(Context& context, const plan::Step& step) {
  const char* path = plan::Text(context.plan, step.text);
  const char* target = plan::Text(context.plan, step.more);
  if (static_cast<plan::Reach>(step.more_value) == plan::Reach::kDirect) {
    return symlinkat(target, context.root, Relative(path));
  }
  const char* last = nullptr;
  const int parent = OpenParent(context, path, &last);
  if (parent < 0) return -1;
  context.detail = 1;
  return CloseKeepErrno(parent, symlinkat(target, parent, last));
}

int Directory(Context& context, const plan::Step& step) {
  // SECURITY: only ever below what Belljar itself made; a mount below another one finds its directory or fails.
  const char* path = Relative(plan::Text(context.plan, step.text));
  if (mkdirat(context.root, path, static_cast<mode_t>(step.value)) != 0) return errno == EEXIST ? 0 : -1;
  if (step.more_value == 0) return 0;
  context.detail = 1;  // more_value: the owner's id + 1, where it is not init itself.
  const auto owner = static_cast<uid_t>(step.more_value - 1);
  return fchownat(context.root, path, owner, owner, AT_SYMLINK_NOFOLLOW);
}

int ReadOnly(Context& context, const char* path) {
  const int at = OpenInRoot(context, path, O_PATH);
  if (at < 0) return -1;
  struct mount_attr attributes = {};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  context.detail = 1;
  return CloseKeepErrno(at, mount_setattr(at, "", AT_EMPTY_PATH, &attributes, sizeof attributes));
}

int SameFile(Context& context, const plan::Step& step) {
  struct open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const auto fd =
      static_cast<int>(syscall(SYS_openat2, AT_FDCWD, plan::Text(context.plan, step.text), &how, sizeof how));
  if (fd < 0) return -1;
  struct stat status;
  context.detail = 1;
  if (CloseKeepErrno(fd, fstat(fd, &status)) != 0) return -1;
  if (status.st_dev == step.value && status.st_ino == step.more_value) return 0;
  errno = ESTALE;
  return -1;
}

int SealRoot(Context& context) {
  struct mount_attr attributes = {};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  return mount_setattr(context.root, "", AT_EMPTY_PATH, &attributes, sizeof attributes);
}

int Pivot(Context& context) {
  if (fchdir(context.root) != 0) return -1;
  // SECURITY: pivot_root and a lazy unmount, not chroot: afterwards no mount of the host is in this namespace at all.
  context.detail = 1;
  if (syscall(SYS_pivot_root, ".", ".") != 0) return -1;
  context.detail = 2;
  if (umount2(".", MNT_DETACH) != 0) return -1;
  context.detail = 3;
  return chdir("/");
}

}  // namespace

int WriteFile(int directory, const char* path, const char* text, std::size_t length, int flags, unsigned mode) {
  const int fd = openat(directory, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | flags, mode);
  if (fd < 0) return -1;
  const ssize_t written = write(fd, text, length);
  if (written >= 0 && static_cast<size_t>(written) != length) errno = EIO;
  return CloseKeepErrno(fd, written >= 0 && static_cast<size_t>(written) == length ? 0 : -1);
}

int DoFileStep(Context& context, const plan::Step& step) {
  const char* text = plan::Text(context.plan, step.text);
  const char* more = plan::Text(context.plan, step.more);
  switch (step.op) {
    case plan::Op::kPrivateMounts:
      // SECURITY: first of all, or what follows would propagate to the host.
      return mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    case plan::Op::kNewRoot: return NewRoot(context, step);
    case plan::Op::kHostRoot:
      context.root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
      return context.root < 0 ? -1 : 0;
    case plan::Op::kDirectory: return Directory(context, step);
    case plan::Op::kSymlink: return Symlink(context, step);
    case plan::Op::kFile:
      return WriteFile(context.root, Relative(text), more, step.more_value, O_CREAT | O_EXCL,
                       static_cast<unsigned>(step.value));
    case plan::Op::kMountPoint: return MountPoint(context, step);
    case plan::Op::kBind: return Bind(context, step);
    case plan::Op::kTmpfs: return MountNew(context, step, "tmpfs", more, step.value);
    case plan::Op::kDevice:
      return mknodat(context.root, Relative(text), S_IFCHR | 0666, static_cast<dev_t>(step.value));
    case plan::Op::kProc: return Proc(context, step);
    case plan::Op::kDevpts: return Devpts(context, step);
    case plan::Op::kTerminals: return Terminals(context, step);
    case plan::Op::kMaskSource: return MaskSource(context, text);
    case plan::Op::kMask: return Mask(context, step);
    case plan::Op::kReadOnly: return ReadOnly(context, text);
    case plan::Op::kSameFile: return SameFile(context, step);
    case plan::Op::kSealRoot: return SealRoot(context);
    case plan::Op::kPivot: return Pivot(context);
    default: errno = EINVAL; return -1;
  }
}

}  // namespace belljar::jail
