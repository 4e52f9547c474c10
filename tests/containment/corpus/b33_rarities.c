// Calls on pages, file handles and watches that few programs make.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "knock.h"

static char page[8192] __attribute__((aligned(4096)));

static enum outcome run_b33_fanotify(struct attempt* attempt) {
  // Without power only in this form, which names no paths.
  const int fd = (int)syscall(SYS_fanotify_init, FAN_CLASS_NOTIF | FAN_REPORT_FID | FAN_CLOEXEC, O_RDONLY);
  if (fd < 0) return refused(attempt, "fanotify_init");
  return worked(attempt, "a listener for events of files");
}
ATTACK(b33_fanotify, "B33a", "fanotify", "listen to what happens to files of the host", "seccomp", 0);

KNOCK(b33_fanotify_mark, "B33b", "fanotify-mark", "watch a whole mount", "seccomp", 0, SYS_fanotify_mark, -1, 1, 1,
      -100, 0);

static enum outcome run_b33_memfd_secret(struct attempt* attempt) {
  if (syscall(447 /* memfd_secret */, 0) < 0) return refused(attempt, "memfd_secret");
  return worked(attempt, "memory that the kernel itself can't see");
}
ATTACK(b33_memfd_secret, "B33c", "memfd-secret", "memory hidden from the kernel, and locked", "seccomp", 0);

KNOCK(b33_mbind, "B33d", "mbind", "bind memory to a node", "seccomp", 0, SYS_mbind, (long)page, 4096, 0, 0, 0, 0);
KNOCK(b33_set_mempolicy, "B33e", "set-mempolicy", "choose the node of its memory", "seccomp", 0, SYS_set_mempolicy, 0,
      0, 0);
KNOCK(b33_get_mempolicy, "B33f", "get-mempolicy", "learn the node of its memory", "seccomp", 0, SYS_get_mempolicy, 0, 0,
      0, 0, 0);
KNOCK(b33_migrate_pages, "B33g", "migrate-pages", "move a process to another node", "seccomp", 0, SYS_migrate_pages, 0,
      0, 0, 0);

static enum outcome run_b33_move_pages(struct attempt* attempt) {
  void* pages[1] = {page};
  int status[1] = {0};
  page[0] = 1;
  if (syscall(SYS_move_pages, 0, 1UL, pages, NULL, status, 0) != 0) return refused(attempt, "move_pages");
  return worked(attempt, "where its pages are");
}
ATTACK(b33_move_pages, "B33h", "move-pages", "learn where its pages are", "seccomp", 0);

static enum outcome run_b33_name_to_handle(struct attempt* attempt) {
  struct {
    struct file_handle head;
    char bytes[128];
  } handle = {.head = {.handle_bytes = 128}};
  int mount_id = 0;
  const char* place = attempt->stage->scratch != NULL ? attempt->stage->scratch : "/tmp";
  if (syscall(SYS_name_to_handle_at, AT_FDCWD, place, &handle, &mount_id, 0) != 0) {
    return refused(attempt, "name_to_handle_at");
  }
  return worked(attempt, "the handle by which a file is known beneath all mounts");
}
ATTACK(b33_name_to_handle, "B33i", "name-to-handle", "the handle of a file, to guess others", "seccomp", 0);

static enum outcome run_b33_vmsplice(struct attempt* attempt) {
  int ends[2];
  const struct iovec piece = {page, 4096};
  if (pipe(ends) != 0 || syscall(SYS_vmsplice, ends[1], &piece, 1UL, 8 /* gift */) < 0)
    return refused(attempt, "vmsplice");
  return worked(attempt, "its page in a pipe, uncopied");
}
ATTACK(b33_vmsplice, "B33j", "vmsplice", "give pages of its memory to a pipe", "seccomp", 0);

static enum outcome run_b33_huge_pages(struct attempt* attempt) {
  // Only addresses: a page is taken from the host's reserve when it is touched, and that is not done here.
  void* memory =
      mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return refused(attempt, "MAP_HUGETLB");
  return worked(attempt, "huge pages, which no memory limit counts");
}
ATTACK(b33_huge_pages, "B33k", "huge-pages", "map the host's reserved huge pages", "seccomp", 0);
