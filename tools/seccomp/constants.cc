#include "seccomp/constants.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "seccomp/rules.h"

namespace belljar::seccomp {
namespace {

struct Named {
  std::string_view name;
  std::uint64_t value;
};

// Numbers instead of names stand for constants that are newer than the headers of Debian 12 or not in any of libc's.
#define CONSTANT(name) {#name, static_cast<std::uint64_t>(name)}
constexpr Named kConstants[] = {
    CONSTANT(AF_UNIX),
    CONSTANT(AF_INET),
    CONSTANT(AF_INET6),
    CONSTANT(AF_NETLINK),
    CONSTANT(SOCK_STREAM),
    CONSTANT(SOCK_DGRAM),
    CONSTANT(SOCK_RAW),
    CONSTANT(SOCK_SEQPACKET),
    CONSTANT(SOCK_NONBLOCK),
    CONSTANT(SOCK_CLOEXEC),
    CONSTANT(IPPROTO_TCP),
    CONSTANT(IPPROTO_UDP),
    CONSTANT(IPPROTO_MPTCP),
    CONSTANT(NETLINK_ROUTE),
    CONSTANT(SOL_SOCKET),
    CONSTANT(SO_ATTACH_FILTER),
    CONSTANT(SO_LINGER),
    CONSTANT(SO_ATTACH_BPF),
    CONSTANT(SO_ATTACH_REUSEPORT_CBPF),
    CONSTANT(SO_ATTACH_REUSEPORT_EBPF),
    CONSTANT(TCP_ULP),
    CONSTANT(TCP_MD5SIG),
    CONSTANT(TCP_MD5SIG_EXT),
    {"TCP_AO_ADD_KEY", 38},
    CONSTANT(IPPROTO_IP),
    CONSTANT(IPPROTO_IPV6),
    CONSTANT(IPV6_2292PKTOPTIONS),
    CONSTANT(IPV6_JOIN_GROUP),
    CONSTANT(IPV6_JOIN_ANYCAST),
    {"IPV6_FLOWLABEL_MGR", 32},
    CONSTANT(IPV6_HOPOPTS),
    CONSTANT(IPV6_DSTOPTS),
    CONSTANT(IP_ADD_MEMBERSHIP),
    CONSTANT(MCAST_JOIN_GROUP),
    CONSTANT(MCAST_MSFILTER),
    CONSTANT(CLONE_NEWNS),
    CONSTANT(CLONE_NEWCGROUP),
    CONSTANT(CLONE_NEWUTS),
    CONSTANT(CLONE_NEWIPC),
    CONSTANT(CLONE_NEWUSER),
    CONSTANT(CLONE_NEWPID),
    CONSTANT(CLONE_NEWNET),
    CONSTANT(CLONE_PARENT),
    CONSTANT(CLOSE_RANGE_UNSHARE),
    CONSTANT(CLONE_FILES),
    CONSTANT(CLONE_THREAD),
    CONSTANT(O_CREAT),
    CONSTANT(__O_TMPFILE),
    CONSTANT(S_ISUID),
    CONSTANT(S_ISGID),
    CONSTANT(S_IFMT),
    CONSTANT(S_IFREG),
    CONSTANT(S_IFIFO),
    CONSTANT(S_IFSOCK),
    CONSTANT(TIOCSTI),
    CONSTANT(TIOCLINUX),
    CONSTANT(TIOCSETD),
    CONSTANT(TIOCCONS),
    CONSTANT(TIOCVHANGUP),
    CONSTANT(SCHED_NORMAL),
    CONSTANT(SCHED_BATCH),
    CONSTANT(SCHED_IDLE),
    CONSTANT(SCHED_RESET_ON_FORK),
    CONSTANT(MADV_PAGEOUT),
    CONSTANT(MAP_HUGETLB),
    CONSTANT(MAP_TYPE),
    CONSTANT(MAP_SHARED),
    CONSTANT(MAP_ANONYMOUS),
    CONSTANT(F_OFD_GETLK),
    CONSTANT(F_OFD_SETLK),
    CONSTANT(F_OFD_SETLKW),
    CONSTANT(MFD_HUGETLB),
    CONSTANT(SHM_HUGETLB),
    CONSTANT(PR_SET_PDEATHSIG),
    CONSTANT(PR_GET_PDEATHSIG),
    CONSTANT(PR_GET_DUMPABLE),
    CONSTANT(PR_SET_DUMPABLE),
    CONSTANT(PR_SET_NAME),
    CONSTANT(PR_GET_NAME),
    CONSTANT(PR_GET_SECCOMP),
    CONSTANT(PR_CAPBSET_READ),
    CONSTANT(PR_GET_SECUREBITS),
    CONSTANT(PR_GET_KEEPCAPS),
    CONSTANT(PR_SET_TIMERSLACK),
    CONSTANT(PR_GET_TIMERSLACK),
    CONSTANT(PR_SET_CHILD_SUBREAPER),
    CONSTANT(PR_GET_CHILD_SUBREAPER),
    CONSTANT(PR_SET_NO_NEW_PRIVS),
    CONSTANT(PR_GET_NO_NEW_PRIVS),
    CONSTANT(PR_SET_THP_DISABLE),
    CONSTANT(PR_GET_THP_DISABLE),
    CONSTANT(PR_SVE_SET_VL),
    CONSTANT(PR_SVE_GET_VL),
    CONSTANT(PR_SET_TAGGED_ADDR_CTRL),
    CONSTANT(PR_GET_TAGGED_ADDR_CTRL),
    CONSTANT(PR_SET_VMA),
    {"PR_GET_AUXV", 0x41555856},
    {"ARCH_SET_GS", 0x1001},
    {"ARCH_SET_FS", 0x1002},
    {"ARCH_GET_FS", 0x1003},
    {"ARCH_GET_GS", 0x1004},
    {"ARCH_GET_XCOMP_SUPP", 0x1021},
    {"ARCH_GET_XCOMP_PERM", 0x1022},
    {"ARCH_REQ_XCOMP_PERM", 0x1023},
    {"ARCH_SHSTK_ENABLE", 0x5001},
    {"ARCH_SHSTK_DISABLE", 0x5002},
    {"ARCH_SHSTK_LOCK", 0x5003},
    {"ARCH_SHSTK_STATUS", 0x5005},
    {"PRIO_USER", 2},
    {"IOPRIO_WHO_USER", 3},
};

constexpr Named kErrnos[] = {
    CONSTANT(EPERM),      CONSTANT(ENOENT),          CONSTANT(EACCES),       CONSTANT(EINVAL), CONSTANT(ENOSYS),
    CONSTANT(ENOMEM),     CONSTANT(EPROTONOSUPPORT), CONSTANT(EAFNOSUPPORT), CONSTANT(ENOTTY), CONSTANT(ENODEV),
    CONSTANT(EOPNOTSUPP), CONSTANT(ENOPROTOOPT),     CONSTANT(ENOSPC),
};
#undef CONSTANT

}  // namespace

std::optional<std::uint64_t> FindConstant(std::string_view name) {
  const auto* found = std::ranges::find(kConstants, name, &Named::name);
  return found != std::end(kConstants) ? std::optional(found->value) : std::nullopt;
}

std::optional<int> FindErrno(std::string_view name) {
  const auto* found = std::ranges::find(kErrnos, name, &Named::name);
  return found != std::end(kErrnos) ? std::optional(static_cast<int>(found->value)) : std::nullopt;
}

std::string_view ErrnoName(int error) {
  const auto* found = std::ranges::find(kErrnos, static_cast<std::uint64_t>(error), &Named::value);
  return found != std::end(kErrnos) ? found->name : std::string_view("?");
}

}  // namespace belljar::seccomp
