// Programs, counters and page faults that a guest hands to the kernel: each a large interpreter or a way to stop the
// kernel in the middle of its work.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "knock.h"

static enum outcome run_b22_bpf_map(struct attempt* attempt) {
  union bpf_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.map_type = BPF_MAP_TYPE_ARRAY;
  attr.key_size = 4;
  attr.value_size = 8;
  attr.max_entries = 1;
  if (syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr) < 0) return refused(attempt, "bpf map");
  return worked(attempt, "a map in the kernel");
}
ATTACK(b22_bpf_map, "B22a", "bpf-map", "create an eBPF map", "seccomp, capabilities", 0);

// Since 5.16 only making maps and programs takes a capability; the rest of the call answers anybody.
static enum outcome run_b22_bpf_lookup(struct attempt* attempt) {
  union bpf_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.map_fd = (unsigned)-1;
  if (syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &attr, sizeof attr) < 0 && is_denied(errno)) {
    return refused(attempt, "bpf lookup");
  }
  return worked(attempt, "bpf() answers without a capability");
}
ATTACK(b22_bpf_lookup, "B22b", "bpf-lookup", "reach bpf() by a command that needs no power", "seccomp", 0);

static enum outcome run_b22_perf_event(struct attempt* attempt) {
  struct perf_event_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.size = sizeof attr;
  attr.config = PERF_COUNT_SW_TASK_CLOCK;
  attr.exclude_kernel = 1;  // what sysctl perf_event_paranoid = 2 leaves to every user
  attr.exclude_hv = 1;
  if (syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) < 0) return refused(attempt, "perf_event_open");
  return worked(attempt, "a performance counter");
}
ATTACK(b22_perf_event, "B22c", "perf-event", "count its own events by perf_event_open", "seccomp", 0);

static enum outcome run_b22_userfaultfd(struct attempt* attempt) {
  const int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
  struct uffdio_api api = {.api = UFFD_API};
  if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0) return refused(attempt, "userfaultfd");
  return worked(attempt, "page faults under its own control");
}
ATTACK(b22_userfaultfd, "B22d", "userfaultfd", "handle its own page faults, to stop the kernel mid-copy", "seccomp", 0);

static enum outcome run_b22_userfault_device(struct attempt* attempt) {
  const int fd = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT && !attempt->stage->inside) return unable(attempt, "no /dev/userfaultfd");
  if (fd < 0 || ioctl(fd, USERFAULTFD_IOC_NEW, O_CLOEXEC) < 0) return refused(attempt, "/dev/userfaultfd");
  return worked(attempt, "page faults of the kernel too");
}
ATTACK(b22_userfault_device, "B22e", "userfault-device", "the same by /dev/userfaultfd, past any syscall filter",
       "root filesystem, landlock, identity", 0);

static enum outcome run_b22_socket_filter(struct attempt* attempt) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return refused(attempt, "socketpair");
  struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, 0xffff)};
  const struct sock_fprog program = {1, code};
  if (setsockopt(ends[0], SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0) {
    return refused(attempt, "SO_ATTACH_FILTER");
  }
  return worked(attempt, "its code compiled into the kernel");
}
ATTACK(b22_socket_filter, "B22f", "socket-filter", "have BPF code of its own compiled, by a socket option", "seccomp",
       0);
