// Changing what is mounted where, for an ordinary user by a user namespace of his own (which is why having dropped all
// capabilities alone stops none of these). Everything is tried in a mount
// namespace of its own, so that a host on which it works does not notice.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "knock.h"

// The later steps are the attack; where these fail, it goes on and is judged by what it is about.
static void own_mounts(void) {
  seek_power();
  if (geteuid() == 0) unshare(CLONE_NEWNS);
  mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static const char* target(const struct attempt* attempt) {
  return attempt->stage->scratch != NULL ? attempt->stage->scratch : "/tmp";
}

static enum outcome run_b26_mount(struct attempt* attempt) {
  own_mounts();
  if (mount("belljar", target(attempt), "tmpfs", 0, "size=4k") != 0) return refused(attempt, "mount of a tmpfs");
  umount2(target(attempt), MNT_DETACH);
  return worked(attempt, "a filesystem of its own choice");
}
ATTACK(b26_mount, "B26a", "mount", "mount a filesystem", "seccomp, landlock", NEEDS_POWER);

static enum outcome run_b26_bind(struct attempt* attempt) {
  own_mounts();
  if (mount("/proc", target(attempt), NULL, MS_BIND | MS_REC, NULL) != 0) return refused(attempt, "bind mount");
  umount2(target(attempt), MNT_DETACH);
  return worked(attempt, "a tree seen at another place, past its covers");
}
ATTACK(b26_bind, "B26b", "bind-mount", "bind a tree elsewhere, past what covers it", "seccomp, landlock", NEEDS_POWER);

// A mount of its own where it can have one: those of a more privileged namespace can't be taken away one by one.
static enum outcome run_b26_umount(struct attempt* attempt) {
  own_mounts();
  mount("belljar", target(attempt), "tmpfs", 0, "size=4k");
  if (umount2(target(attempt), MNT_DETACH) != 0) return refused(attempt, "umount2");
  return worked(attempt, "a mount taken away");
}
ATTACK(b26_umount, "B26c", "umount", "take a mount away that covers something", "seccomp, landlock", NEEDS_POWER);

static enum outcome run_b26_remount(struct attempt* attempt) {
  own_mounts();
  if (mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_NOSUID, NULL) != 0) return refused(attempt, "remount of /");
  return worked(attempt, "other flags on the root");
}
ATTACK(b26_remount, "B26d", "remount", "change the flags of the root's mount", "seccomp, landlock", NEEDS_POWER);

static enum outcome run_b26_pivot_root(struct attempt* attempt) {
  own_mounts();
  // Behind the permission, "." is no mount of its own: EINVAL or EBUSY.
  if (syscall(SYS_pivot_root, ".", ".") != 0 && is_denied(errno)) return refused(attempt, "pivot_root");
  return worked(attempt, "pivot_root judges the directories");
}
ATTACK(b26_pivot_root, "B26e", "pivot-root", "change the root of its namespace", "seccomp, landlock", NEEDS_POWER);

static enum outcome run_b26_chroot(struct attempt* attempt) {
  own_mounts();
  const int outside = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (chroot(target(attempt)) != 0) return refused(attempt, "chroot");
  // The classic way out of a root: with a directory outside of it open, ".." leads further and further up.
  struct stat before, after;
  if (fstat(outside, &before) != 0 || fchdir(outside) != 0 || stat(".", &after) != 0) return refused(attempt, "fchdir");
  return worked(attempt, before.st_ino == after.st_ino ? "stands outside of its root" : "another root");
}
ATTACK(b26_chroot, "B26f", "chroot", "leave its root by chroot and an open directory", "seccomp", NEEDS_POWER);

static enum outcome run_b26_fsopen(struct attempt* attempt) {
  own_mounts();
  const long fd = syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
  if (fd < 0) return refused(attempt, "fsopen");
  if (syscall(SYS_fsconfig, fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0) return refused(attempt, "fsconfig");
  const long made = syscall(SYS_fsmount, fd, FSMOUNT_CLOEXEC, 0);
  if (made < 0) return refused(attempt, "fsmount");
  return worked(attempt, "a filesystem, not even attached");
}
ATTACK(b26_fsopen, "B26g", "fsopen", "make a filesystem by the newer mount calls", "seccomp", NEEDS_POWER);

static enum outcome run_b26_open_tree(struct attempt* attempt) {
  own_mounts();
  if (syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE) < 0)
    return refused(attempt, "open_tree");
  return worked(attempt, "a detached copy of the root");
}
ATTACK(b26_open_tree, "B26h", "open-tree", "copy the root, without what covers parts of it", "seccomp", NEEDS_POWER);

static enum outcome run_b26_move_mount(struct attempt* attempt) {
  own_mounts();
  const long tree = syscall(SYS_open_tree, AT_FDCWD, target(attempt), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  // Without a copy to move the call still shows whether it is there.
  const long moved = syscall(SYS_move_mount, tree, "", AT_FDCWD, target(attempt), MOVE_MOUNT_F_EMPTY_PATH);
  if (moved != 0 && (is_denied(errno) || tree < 0)) return refused(attempt, "move_mount");
  if (moved == 0) umount2(target(attempt), MNT_DETACH);
  return worked(attempt, "a mount moved");
}
ATTACK(b26_move_mount, "B26i", "move-mount", "attach a copy of a tree", "seccomp, landlock", NEEDS_POWER);

static enum outcome run_b26_mount_setattr(struct attempt* attempt) {
  own_mounts();
  struct mount_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.attr_set = MOUNT_ATTR_NOSUID;
  if (syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &attr, sizeof attr) != 0) return refused(attempt, "mount_setattr");
  return worked(attempt, "other attributes on the root");
}
ATTACK(b26_mount_setattr, "B26j", "mount-setattr", "change attributes of the root's mount", "seccomp", NEEDS_POWER);

KNOCK(b26_listmount, "B26k", "listmount", "list the mounts of its namespace with their sources", "seccomp", 0,
      458 /* listmount */, NOWHERE, NOWHERE, 0, 0);
