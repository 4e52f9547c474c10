// Surface probe: tries kernel entry points and host resources that a guest has no need for, and prints for each
// "NAME answered|refused ERRNO". "Answered" means that the kernel did it, gave something back, or got as far as judging
// the arguments, so that a guest can reach that code.
//
// It must be harmless when root runs it outside a sandbox, as the control does: the arguments (descriptor -1, pointer
// 1, impossible flags) make a call fail behind the permission check; what can succeed changes only the child that tries
// it.
//
//   surface HOST_PID TCP_PORT ABSTRACT_NAME SOCKET_PATH FILE SHM_KEY      things of the host that the test has made
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define BAD ((long)1)  // a pointer that can't be read
#define KILLED 1000    // the answer was death

static pid_t host_pid = 1;
static int host_port;
static const char* host_abstract = "";
static const char* host_socket = "";
static const char* host_file = "";
static key_t host_key;

static int answered_count, tried_count;

// Errors that mean "you may not" or "there is no such thing here"; all others come from code behind that decision.
static int is_refusal(int error) {
  switch (error) {
    case EPERM:
    case EACCES:
    case ENOSYS:
    case EAFNOSUPPORT:
    case EPROTONOSUPPORT:
    case ESOCKTNOSUPPORT:
    case EOPNOTSUPP:
    case KILLED: return 1;
    default: return 0;
  }
}

static void report(const char* name, int answered, int error) {
  printf("%s %s %d\n", name, answered ? "answered" : "refused", error);
  tried_count++;
  answered_count += answered;
}

// Runs `attempt` in a child, so that nothing it does lasts. Returns 0 for success or the errno.
static int try_in_child(long (*attempt)(const void*), const void* argument) {
  int ends[2];
  if (pipe(ends) != 0) exit(3);
  fflush(stdout);
  const pid_t child = fork();
  if (child < 0) exit(3);
  if (child == 0) {
    alarm(5);
    errno = 0;
    int error = attempt(argument) < 0 ? errno : 0;
    if (write(ends[1], &error, sizeof error) < 0) _exit(1);
    _exit(0);
  }
  close(ends[1]);
  int error = KILLED;
  if (read(ends[0], &error, sizeof error) != sizeof error) error = KILLED;
  close(ends[0]);
  waitpid(child, NULL, 0);
  return error;
}

// BY_SUCCESS: where a refusal may look like a wrong argument.
enum Judge { BY_ERRNO, BY_SUCCESS };

struct Call {
  const char* name;
  long number;
  long arguments[6];
  enum Judge judge;
};

static long make_call(const void* data) {
  const struct Call* call = data;
  const long* a = call->arguments;
  return syscall(call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static char scratch[4096];
#define BUFFER ((long)scratch)

static const struct Call calls[] = {
    // 22–24: tracing, io_uring, keys
    {"bpf", 321, {0, BAD, 8}},
    {"perf_event_open", 298, {BAD, 0, -1, -1, 0}},
    {"userfaultfd", 323, {0x40000000}},
    {"io_uring_setup", 425, {1, BAD}},
    {"io_uring_enter", 426, {-1, 0, 0, 0, 0, 0}},
    {"io_uring_register", 427, {-1, 0, 0, 0}},
    {"io_setup", 206, {0, BAD}},
    {"io_destroy", 207, {0}},
    {"io_getevents", 208, {0, 1, 1, 0, 0}},
    {"io_submit", 209, {0, 1, BAD}},
    {"io_cancel", 210, {0, BAD, BAD}},
    {"add_key", 248, {BAD, BAD, 0, 0, 0}},
    {"request_key", 249, {BAD, BAD, 0, 0}},
    {"keyctl_session_keyring", 250, {0, -3, 0}},
    {"keyctl_describe", 250, {6, -4, BUFFER, 4096}},
    // 25: other processes
    {"ptrace_peek", 101, {2, 0x7ffffffe, 0, 0}},
    {"ptrace_seize", 101, {0x4206, 0x7ffffffe, 0, 0}},
    {"process_vm_readv", 310, {0x7ffffffe, BAD, 1, BAD, 1, 0}},
    {"process_vm_writev", 311, {0x7ffffffe, BAD, 1, BAD, 1, 0}},
    {"process_madvise", 440, {-1, BAD, 1, 0, 0}},
    {"process_mrelease", 448, {-1, 0}},
    {"pidfd_getfd", 438, {-1, 0, 0}},
    {"kcmp", 312, {0x7ffffffe, 0x7ffffffe, 0, 0, 0}},
    {"get_robust_list", 274, {0, BUFFER, BUFFER + 64}},
    // 26: mounts
    {"mount", 165, {BAD, BAD, BAD, 0, 0}},
    {"umount2", 166, {BAD, 0}},
    {"pivot_root", 155, {BAD, BAD}},
    {"chroot", 161, {BAD}},
    {"fsopen", 430, {BAD, 0}},
    {"fsconfig", 431, {-1, 0, 0, 0, 0}},
    {"fsmount", 432, {-1, 0, 0}},
    {"fspick", 433, {-1, BAD, 0}},
    {"open_tree", 428, {-1, BAD, 0}},
    {"open_tree_attr", 467, {-1, BAD, 0, 0, 0}},
    {"move_mount", 429, {-1, BAD, -1, BAD, 0}},
    {"mount_setattr", 442, {-1, BAD, 0, BAD, 0}},
    {"statmount", 457, {BAD, BAD, 0, 0}},
    {"listmount", 458, {BAD, BAD, 0, 0}},
    // 27: namespaces; each lasts as long as the child that asked
    {"unshare_user", 272, {CLONE_NEWUSER}},
    {"unshare_mount", 272, {CLONE_NEWNS}},
    {"unshare_net", 272, {CLONE_NEWNET}},
    {"unshare_pid", 272, {CLONE_NEWPID}},
    {"unshare_ipc", 272, {CLONE_NEWIPC}},
    {"unshare_uts", 272, {CLONE_NEWUTS}},
    {"unshare_cgroup", 272, {CLONE_NEWCGROUP}},
    {"unshare_time", 272, {0x80}},
    {"clone3", 435, {BAD, 0}},
    {"setns", 308, {-1, 0}},
    // 28: the machine. kexec_load with flags and a count that no kernel takes; reboot without its magic numbers.
    {"kexec_load", 246, {0, 0x7fffffff, 0, 0xffff}},
    {"kexec_file_load", 320, {-1, -1, 0, 0, 0x7fff0000}},
    {"init_module", 175, {BAD, 0, BAD}},
    {"finit_module", 313, {-1, BAD, 0x7fff0000}},
    {"delete_module", 176, {BAD, 0}},
    {"reboot", 169, {0, 0, 0, 0}},
    {"swapon", 167, {BAD, 0}},
    {"swapoff", 168, {BAD}},
    {"acct", 163, {BAD}},
    {"quotactl", 179, {0x7f7f, 0, 0, 0}},
    {"quotactl_fd", 443, {-1, 0x7f7f, 0, 0}},
    {"iopl", 172, {4}},
    {"ioperm", 173, {0x7fffffff, 1, 1}},
    {"syslog_size", 103, {10, 0, 0}},
    {"syslog_read_all", 103, {3, BUFFER, 4096}},
    {"settimeofday", 164, {BAD, 0}},
    {"clock_settime", 227, {0, BAD}},
    {"clock_adjtime", 305, {0, BAD}},
    {"adjtimex", 159, {BAD}},
    {"sethostname", 170, {BAD, 4096}},
    {"setdomainname", 171, {BAD, 4096}},
    // 29, 33: relics and rarities
    {"modify_ldt", 154, {0, BUFFER, 64}},
    {"personality_no_randomize", 135, {0x40000}},
    {"personality_mmap_page_zero", 135, {0x100000}},
    {"remap_file_pages", 216, {BAD, 1, 0, 0, 0}},
    {"uselib", 134, {BAD}},
    {"sysfs", 139, {3, 0, 0}},
    {"ustat", 136, {0, BAD}},
    {"fanotify_init", 300, {0, 0}},
    {"fanotify_mark", 301, {-1, 0, 0, -1, 0}},
    {"memfd_secret", 447, {0}},
    {"mbind", 237, {0, 4096, 0xff, 0, 0, 0}},
    {"set_mempolicy", 238, {0xff, 0, 0}},
    {"get_mempolicy", 239, {0, 0, 0, 0, 0}},
    {"set_mempolicy_home_node", 450, {0, 4096, 0xffff, 0}},
    {"migrate_pages", 256, {0x7ffffffe, 0, 0, 0}},
    {"move_pages", 279, {0, 0, 0, 0, 0, 0}},
    {"name_to_handle_at", 303, {AT_FDCWD, BAD, BAD, BAD, 0}},
    {"open_by_handle_at", 304, {-1, BAD, 0}},
    {"cachestat", 451, {-1, BAD, BAD, 0}},
    {"vmsplice", 278, {-1, BAD, 1, 0}},
    // 39, 41: nested filters, real-time scheduling, locked memory
    {"seccomp_listener", 317, {1, 8, BAD}},
    {"seccomp_notif_sizes", 317, {3, 0, BUFFER}},
    {"prctl_seccomp", 157, {PR_SET_SECCOMP, 2, BAD}, BY_SUCCESS},
    {"landlock_create_ruleset", 444, {0, 0, 1}},
    {"landlock_add_rule", 445, {-1, 1, BAD, 0}},
    {"lsm_get_self_attr", 459, {100, BUFFER, BUFFER + 2048, 0}},
    {"lsm_set_self_attr", 460, {100, BAD, 0, 0}},
    {"lsm_list_modules", 461, {BUFFER, BUFFER + 2048, 0}},
    {"mlockall", 151, {0}},
    {"munlockall", 152, {0}},
    {"sched_setattr", 314, {0, BAD, 0}},
    {"sched_getattr", 315, {0, BUFFER, 48, 0}},
    {"setpriority_minus_20", 141, {PRIO_PROCESS, 0, -20}},
    {"ioprio_realtime", 251, {1, 0, 1 << 13}},
    {"prctl_securebits", 157, {PR_SET_SECUREBITS, 0}, BY_SUCCESS},
    {"prctl_cap_ambient_clear", 157, {PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0}, BY_SUCCESS},
    {"prctl_set_ptracer", 157, {PR_SET_PTRACER, -1, 0, 0, 0}, BY_SUCCESS},
    {"prctl_perf_disable", 157, {PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0}, BY_SUCCESS},
    {"prctl_mce_kill_get", 157, {PR_MCE_KILL_GET, 0, 0, 0, 0}, BY_SUCCESS},
    {"prctl_speculation", 157, {PR_GET_SPECULATION_CTRL, 0, 0, 0, 0}, BY_SUCCESS},
};

struct Family {
  const char* name;
  int family, type, protocol;
};

// 34–36. Only made, never connected.
static const struct Family families[] = {
    {"socket_packet", AF_PACKET, SOCK_RAW, 0},
    {"socket_packet_dgram", AF_PACKET, SOCK_DGRAM, 0},
    {"socket_raw_icmp", AF_INET, SOCK_RAW, 1},
    {"socket_raw_tcp", AF_INET, SOCK_RAW, 6},
    {"socket_raw6", AF_INET6, SOCK_RAW, 58},
    {"socket_ping", AF_INET, SOCK_DGRAM, 1},
    {"socket_vsock", 40, SOCK_STREAM, 0},
    {"socket_alg", 38, SOCK_SEQPACKET, 0},
    {"socket_key", 15, SOCK_RAW, 2},
    {"socket_xdp", 44, SOCK_RAW, 0},
    {"socket_tipc", 30, SOCK_RDM, 0},
    {"socket_rds", 21, SOCK_SEQPACKET, 0},
    {"socket_smc", 43, SOCK_STREAM, 0},
    {"socket_kcm", 41, SOCK_DGRAM, 0},
    {"socket_bluetooth", 31, SOCK_RAW, 1},
    {"socket_can", 29, SOCK_RAW, 1},
    {"socket_nfc", 39, SOCK_RAW, 1},
    {"socket_pppox", 24, SOCK_STREAM, 0},
    {"socket_llc", 26, SOCK_DGRAM, 0},
    {"socket_phonet", 35, SOCK_DGRAM, 0},
    {"socket_ieee802154", 36, SOCK_DGRAM, 0},
    {"socket_qipcrtr", 42, SOCK_DGRAM, 0},
    {"socket_rxrpc", 33, SOCK_DGRAM, AF_INET},
    {"socket_sctp", AF_INET, SOCK_STREAM, 132},
    {"socket_mptcp", AF_INET, SOCK_STREAM, 262},
    {"socket_udplite", AF_INET, SOCK_DGRAM, 136},
    {"socket_udp", AF_INET, SOCK_DGRAM, 0},
    {"socket_dccp", AF_INET, 6, 33},
    {"netlink_usersock", AF_NETLINK, SOCK_RAW, 2},
    {"netlink_sock_diag", AF_NETLINK, SOCK_RAW, 4},
    {"netlink_nflog", AF_NETLINK, SOCK_RAW, 5},
    {"netlink_xfrm", AF_NETLINK, SOCK_RAW, 6},
    {"netlink_selinux", AF_NETLINK, SOCK_RAW, 7},
    {"netlink_iscsi", AF_NETLINK, SOCK_RAW, 8},
    {"netlink_audit", AF_NETLINK, SOCK_RAW, 9},
    {"netlink_fib_lookup", AF_NETLINK, SOCK_RAW, 10},
    {"netlink_connector", AF_NETLINK, SOCK_RAW, 11},
    {"netlink_netfilter", AF_NETLINK, SOCK_RAW, 12},
    {"netlink_uevent", AF_NETLINK, SOCK_RAW, 15},
    {"netlink_generic", AF_NETLINK, SOCK_RAW, 16},
    {"netlink_scsi", AF_NETLINK, SOCK_RAW, 18},
    {"netlink_rdma", AF_NETLINK, SOCK_RAW, 20},
    {"netlink_crypto", AF_NETLINK, SOCK_RAW, 21},
};

static long make_socket(const void* data) {
  const struct Family* f = data;
  return socket(f->family, f->type | SOCK_CLOEXEC, f->protocol);
}

// Files: readable means that at least one byte comes; a directory answers when it has an entry.
static const char* const readable[] = {
    "/proc/acpi",
    "/proc/asound",
    "/proc/buddyinfo",
    "/proc/bus",
    "/proc/cgroups",
    "/proc/cmdline",
    "/proc/config.gz",
    "/proc/consoles",
    "/proc/crypto",
    "/proc/devices",
    "/proc/diskstats",
    "/proc/driver",
    "/proc/dynamic_debug/control",
    "/proc/execdomains",
    "/proc/fb",
    "/proc/fs",
    "/proc/interrupts",
    "/proc/iomem",
    "/proc/ioports",
    "/proc/irq",
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/key-users",
    "/proc/keys",
    "/proc/kmsg",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/latency_stats",
    "/proc/locks",
    "/proc/mdstat",
    "/proc/misc",
    "/proc/modules",
    "/proc/mtrr",
    "/proc/pagetypeinfo",
    "/proc/partitions",
    "/proc/pressure/cpu",
    "/proc/sched_debug",
    "/proc/schedstat",
    "/proc/scsi",
    "/proc/slabinfo",
    "/proc/softirqs",
    "/proc/swaps",
    "/proc/sysvipc/shm",
    "/proc/timer_list",
    "/proc/tty/drivers",
    "/proc/vmallocinfo",
    "/proc/vmstat",
    "/proc/zoneinfo",
    "/proc/loadavg",
    "/proc/version",
    "/proc/filesystems",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/random/boot_id",
    "/proc/sys/kernel/tainted",
    "/proc/sys/kernel/printk",
    "/proc/sys/kernel/sysrq",
    "/proc/sys/vm/swappiness",
    "/proc/sys/fs/file-nr",
    "/proc/sys/fs/binfmt_misc",
    "/proc/sys/net/ipv4",
    "/proc/sys/dev",
    "/proc/1/environ",
    "/proc/1/mem",
    "/proc/1/maps",
    "/proc/1/root",
    "/proc/1/cwd",
    "/proc/1/fd",
    "/proc/1/stack",
    "/sys/kernel",
    "/sys/kernel/debug",
    "/sys/kernel/tracing",
    "/sys/kernel/security",
    "/sys/kernel/notes",
    "/sys/firmware",
    "/sys/class/net",
    "/sys/block",
    "/sys/bus",
    "/sys/module",
    "/sys/power/state",
    "/sys/fs/cgroup",
    "/sys/fs/bpf",
    "/sys/fs/pstore",
    "/sys/devices/virtual/dmi/id/sys_vendor",
    "/etc/shadow",
    "/etc/machine-id",
    "/etc/ssh",
    "/etc/fstab",
    "/etc/crontab",
    "/root",
    "/home",
    "/boot",
    "/run",
    "/var/log",
    "/var/lib",
    "/var/spool",
    "/opt",
    "/srv",
    "/mnt",
};

static long read_something(const void* data) {
  const int fd = open(data, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return -1;
  struct stat status;
  if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
    DIR* directory = fdopendir(fd);
    if (directory == NULL) return -1;
    for (const struct dirent* entry; (entry = readdir(directory)) != NULL;) {
      if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) return 0;
    }
    errno = ENOENT;
    return -1;
  }
  // Not read, since that would take the message away from the host's logger.
  if (strcmp(data, "/proc/kmsg") == 0 && S_ISREG(status.st_mode)) return 0;
  char byte;
  // The first page of a process's memory is never mapped, so its text is read.
  const ssize_t got = strcmp(data, "/proc/1/mem") == 0 ? pread(fd, &byte, 1, 0x400000) : read(fd, &byte, 1);
  if (got > 0 || (got < 0 && errno == EAGAIN) || (got < 0 && errno == EIO)) return 0;
  if (got == 0) errno = ENODATA;
  return -1;
}

// Opened for writing and closed again, nothing is written.
static const char* const writable[] = {
    "/proc/sysrq-trigger",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hostname",
    "/proc/sys/vm/drop_caches",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/1/oom_score_adj",
    "/proc/self/uid_map",
    "/sys/kernel/uevent_helper",
    "/sys/fs/cgroup/cgroup.procs",
    "/sys/fs/cgroup/memory/cgroup.procs",
    "/sys/fs/cgroup/pids/cgroup.procs",
    "/sys/fs/cgroup/unified/cgroup.procs",
    "/sys/power/state",
    "/proc/mtrr",
    "/proc/self/timerslack_ns",
    "/proc/self/clear_refs",
};

static long open_for_writing(const void* data) {
  const int fd = open(data, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) return -1;
  if (!S_ISCHR(status.st_mode) || status.st_rdev != makedev(1, 3)) return 0;
  errno = ENODATA;  // hidden under /dev/null
  return -1;
}

// Devices: opening is answer enough. Not opened are those on which that has an effect: watchdog, snapshot.
static const char* const devices[] = {
    "/dev/mem",
    "/dev/kmem",
    "/dev/port",
    "/dev/kmsg",
    "/dev/kvm",
    "/dev/fuse",
    "/dev/net/tun",
    "/dev/vhost-net",
    "/dev/vda",
    "/dev/sda",
    "/dev/loop-control",
    "/dev/loop0",
    "/dev/mapper/control",
    "/dev/console",
    "/dev/tty0",
    "/dev/vcs",
    "/dev/hpet",
    "/dev/rtc0",
    "/dev/cpu/0/msr",
    "/dev/userfaultfd",
    "/dev/uinput",
    "/dev/hwrng",
    "/dev/nvram",
    "/dev/vfio/vfio",
    "/dev/dri/card0",
    "/dev/btrfs-control",
    "/dev/ram0",
    "/dev/cpu_dma_latency",
    "/dev/autofs",
    "/dev/ttyS0",
};

static long open_device(const void* data) { return open(data, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); }

static long may_write(const void* data) { return access(data, W_OK); }

static long connect_unix(const char* name, int abstract) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const size_t length = strlen(name);
  if (length == 0 || length > sizeof address.sun_path - 2) {
    errno = ENOENT;
    return -1;
  }
  memcpy(address.sun_path + abstract, name, length);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return connect(fd, (struct sockaddr*)&address,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + abstract + length + !abstract));
}

static long host_abstract_socket(const void* data) {
  (void)data;
  return connect_unix(host_abstract, 1);
}
static long host_path_socket(const void* data) { return connect_unix(data, 0); }

static long host_loopback(const void* data) {
  (void)data;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)host_port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return connect(fd, (struct sockaddr*)&address, sizeof address);
}

static long host_kill(const void* data) {
  (void)data;
  return kill(host_pid, 0);
}
static long host_pidfd(const void* data) {
  (void)data;
  return syscall(434, host_pid, 0);
}
static long host_pgid(const void* data) {
  (void)data;
  return getpgid(host_pid);
}
static long host_priority(const void* data) {
  (void)data;
  errno = 0;
  getpriority(PRIO_PROCESS, (id_t)host_pid);
  return errno ? -1 : 0;
}
static long host_affinity(const void* data) {
  (void)data;
  return syscall(204, host_pid, sizeof scratch, scratch);
}
static long host_limits(const void* data) {
  (void)data;
  return prlimit(host_pid, RLIMIT_NOFILE, NULL, (struct rlimit*)scratch);
}
static long host_proc(const void* data) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)host_pid, (const char*)data);
  return read_something(path);
}
static long host_shm(const void* data) {
  (void)data;
  return shmget(host_key, 0, 0);
}
static long host_setown(const void* data) {
  (void)data;
  int ends[2];
  return pipe(ends) == 0 ? fcntl(ends[0], F_SETOWN, host_pid) : -1;
}

// A terminal of its own: what is typed into it goes nowhere.
static long terminal_ioctl(const void* data) {
  const int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) return 0;
  setsid();
  const int slave = open(ptsname(master), O_RDWR | O_CLOEXEC);
  if (slave < 0) return 0;
  int zero = 0;
  errno = 0;
  return syscall(SYS_ioctl, slave, *(const unsigned long*)data, &zero);
}

static long clone_user(const void* data) {
  (void)data;
  const long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) _exit(0);
  return child;
}
static long hang_up(const void* data) {
  (void)data;
  setsid();
  return syscall(153);
}  // no terminal is left to hang up
static long real_time(const void* data) {
  (void)data;
  const struct sched_param p = {.sched_priority = 1};
  return sched_setscheduler(0, SCHED_FIFO, &p);
}
static long page_zero(const void* data) {
  (void)data;
  return mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED ? -1 : 0;
}
static long make_device(const void* data) {
  char name[64];
  snprintf(name, sizeof name, "/tmp/belljar-probe-node-%d", (int)getpid());
  const int made = mknod(name, *(const mode_t*)data | 0600, makedev(1, 3));
  const int error = errno;
  unlink(name);
  errno = error;
  return made;
}
static long old_entry(const void* data) {
  (void)data;
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
  if (result >= 0) return 0;
  errno = (int)-result;
  return -1;
}
static long x32_entry(const void* data) {
  (void)data;
  return syscall(0x40000000L + 39);
}
static long become_root(const void* data) {
  (void)data;
  return setresuid(0, 0, 0);
}

static void by_errno(const char* name, long (*attempt)(const void*), const void* argument) {
  const int error = try_in_child(attempt, argument);
  report(name, error == 0 || !is_refusal(error), error);
}

static void by_success(const char* name, long (*attempt)(const void*), const void* argument) {
  const int error = try_in_child(attempt, argument);
  report(name, error == 0 || error == EFAULT, error);
}

static void by_list(const char* prefix, const char* const* list, size_t count, long (*attempt)(const void*)) {
  for (size_t i = 0; i < count; ++i) {
    char name[160];
    snprintf(name, sizeof name, "%s:%s", prefix, list[i]);
    by_success(name, attempt, list[i]);
  }
}
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static void host_resources(void) {
  by_success("host_signal", host_kill, NULL);
  by_success("host_pidfd", host_pidfd, NULL);
  by_success("host_pgid", host_pgid, NULL);
  by_success("host_priority", host_priority, NULL);
  by_success("host_affinity", host_affinity, NULL);
  by_success("host_limits", host_limits, NULL);
  by_success("host_setown", host_setown, NULL);
  static const char* const entries[] = {"cmdline", "environ", "maps", "fd", "cwd", "root", "status"};
  by_list("host_proc", entries, COUNT(entries), host_proc);
  by_success("host_abstract_socket", host_abstract_socket, NULL);
  by_success("host_path_socket", host_path_socket, host_socket);
  by_success("host_loopback", host_loopback, NULL);
  by_success("host_shm", host_shm, NULL);
  by_success("host_file", read_something, host_file);
  static const char* const sockets[] = {"/run/docker.sock",        "/run/containerd/containerd.sock",
                                        "/run/podman/podman.sock", "/run/dbus/system_bus_socket",
                                        "/run/systemd/private",    "/run/systemd/journal/stdout",
                                        "/run/udev/control"};
  by_list("connect", sockets, COUNT(sockets), host_path_socket);
  static const char* const system[] = {"/", "/etc", "/usr", "/usr/bin", "/bin/sh", "/proc/sys", "/dev"};
  by_list("write_access", system, COUNT(system), may_write);
}

static void odd_calls(void) {
  static const unsigned long sti = TIOCSTI, high_sti = 0x100000000UL | TIOCSTI, tiocl = TIOCLINUX, keyboard = 0x4B31,
                             console = 0x5603;
  by_errno("ioctl_tiocsti", terminal_ioctl, &sti);
  by_errno("ioctl_tiocsti_high_bits", terminal_ioctl, &high_sti);
  by_errno("ioctl_tioclinux", terminal_ioctl, &tiocl);
  by_errno("ioctl_console_state", terminal_ioctl, &console);
  by_errno("ioctl_keyboard_leds", terminal_ioctl, &keyboard);
  by_errno("clone_user", clone_user, NULL);
  by_errno("vhangup", hang_up, NULL);
  by_errno("sched_fifo", real_time, NULL);
  by_errno("map_page_zero", page_zero, NULL);
  static const mode_t character = S_IFCHR, block = S_IFBLK;
  by_errno("mknod_character", make_device, &character);
  by_errno("mknod_block", make_device, &block);
  by_errno("int80", old_entry, NULL);
  by_errno("x32", x32_entry, NULL);
  by_success("setresuid_0", become_root, NULL);
}

int main(int argc, char** argv) {
  if (argc > 1) host_pid = atoi(argv[1]);
  if (argc > 2) host_port = atoi(argv[2]);
  if (argc > 3) host_abstract = argv[3];
  if (argc > 4) host_socket = argv[4];
  if (argc > 5) host_file = argv[5];
  if (argc > 6) host_key = (key_t)strtol(argv[6], NULL, 0);
  for (size_t i = 0; i < COUNT(calls); ++i) {
    (calls[i].judge == BY_ERRNO ? by_errno : by_success)(calls[i].name, make_call, &calls[i]);
  }
  for (size_t i = 0; i < COUNT(families); ++i) by_errno(families[i].name, make_socket, &families[i]);
  odd_calls();
  by_list("read", readable, COUNT(readable), read_something);
  by_list("open_write", writable, COUNT(writable), open_for_writing);
  by_list("device", devices, COUNT(devices), open_device);
  host_resources();
  printf("total %d answered %d\n", tried_count, answered_count);
  return 0;
}
