#include "plan/traced_calls.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace belljar::plan {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArch = AUDIT_ARCH_AARCH64;
#else
#error "belljar knows x86_64 and aarch64"
#endif

constexpr TracedCall Path(int number, std::string_view operation, Use use, std::int8_t path) {
  return {.number = number, .operation = operation, .use = use, .first = {-1, path}, .second = {}};
}
constexpr TracedCall At(int number, std::string_view operation, Use use, std::int8_t directory, std::int8_t path,
                        std::int8_t flags = -1) {
  return {
      .number = number, .operation = operation, .use = use, .first = {directory, path}, .second = {}, .flags = flags};
}
constexpr TracedCall Two(int number, std::string_view operation, PathArgument from, PathArgument to) {
  return {.number = number, .operation = operation, .use = Use::kCreate, .first = from, .second = to};
}
constexpr TracedCall Address(int number, std::string_view operation, Use use, std::int8_t address) {
  return {.number = number,
          .operation = operation,
          .use = use,
          .first = {},
          .second = {},
          .address = address,
          .length = static_cast<std::int8_t>(address + 1)};
}
constexpr TracedCall Message(int number) {
  return {.number = number, .operation = "send", .use = Use::kConnect, .first = {}, .second = {}, .message = 1};
}
constexpr TracedCall Openat2() {
  TracedCall call = At(SYS_openat2, "open", Use::kRead, 0, 1, 2);
  call.flags_struct = 1;
  return call;
}

constexpr auto kCalls = std::to_array<TracedCall>({
#ifdef SYS_open  // The calls that only older architectures have.
    At(SYS_open, "open", Use::kRead, -1, 0, 1),
    Path(SYS_creat, "open", Use::kCreate, 0),
    Path(SYS_stat, "stat", Use::kLook, 0),
    Path(SYS_lstat, "stat", Use::kLook, 0),
    Path(SYS_access, "access", Use::kLook, 0),
    Path(SYS_readlink, "readlink", Use::kLook, 0),
    Path(SYS_unlink, "unlink", Use::kRemove, 0),
    Two(SYS_rename, "rename", {-1, 0}, {-1, 1}),
    Path(SYS_mkdir, "mkdir", Use::kCreate, 0),
    Path(SYS_rmdir, "rmdir", Use::kRemove, 0),
    Two(SYS_link, "link", {-1, 0}, {-1, 1}),
    Path(SYS_symlink, "symlink", Use::kCreate, 1),
    Path(SYS_chmod, "chmod", Use::kWrite, 0),
    Path(SYS_chown, "chown", Use::kWrite, 0),
    Path(SYS_lchown, "chown", Use::kWrite, 0),
    Path(SYS_utime, "utime", Use::kWrite, 0),
    Path(SYS_utimes, "utime", Use::kWrite, 0),
    At(SYS_futimesat, "utime", Use::kWrite, 0, 1),
    Path(SYS_mknod, "mknod", Use::kCreate, 0),
#endif
#ifdef SYS_renameat
    Two(SYS_renameat, "rename", {0, 1}, {2, 3}),
#endif
    At(SYS_openat, "open", Use::kRead, 0, 1, 2),
    Openat2(),
    At(SYS_newfstatat, "stat", Use::kLook, 0, 1, 3),
    At(SYS_statx, "stat", Use::kLook, 0, 1, 2),
    At(SYS_faccessat, "access", Use::kLook, 0, 1),
    At(SYS_faccessat2, "access", Use::kLook, 0, 1, 3),
    At(SYS_readlinkat, "readlink", Use::kLook, 0, 1),
    Path(SYS_execve, "exec", Use::kExecute, 0),
    At(SYS_execveat, "exec", Use::kExecute, 0, 1, 4),
    At(SYS_unlinkat, "unlink", Use::kRemove, 0, 1),
    Two(SYS_renameat2, "rename", {0, 1}, {2, 3}),
    At(SYS_mkdirat, "mkdir", Use::kCreate, 0, 1),
    Two(SYS_linkat, "link", {0, 1}, {2, 3}),
    At(SYS_symlinkat, "symlink", Use::kCreate, 1, 2),
    Path(SYS_truncate, "truncate", Use::kWrite, 0),
    At(SYS_fchmodat, "chmod", Use::kWrite, 0, 1),
    At(452, "chmod", Use::kWrite, 0, 1, 3),  // fchmodat2, newer than the headers
    At(SYS_fchownat, "chown", Use::kWrite, 0, 1, 4),
    At(SYS_utimensat, "utime", Use::kWrite, 0, 1, 3),
    At(SYS_mknodat, "mknod", Use::kCreate, 0, 1),
    Path(SYS_statfs, "statfs", Use::kLook, 0),
    Path(SYS_chdir, "chdir", Use::kLook, 0),
    Path(SYS_getxattr, "getxattr", Use::kLook, 0),
    Path(SYS_lgetxattr, "getxattr", Use::kLook, 0),
    Path(SYS_listxattr, "listxattr", Use::kLook, 0),
    Path(SYS_llistxattr, "listxattr", Use::kLook, 0),
    Path(SYS_setxattr, "setxattr", Use::kWrite, 0),
    Path(SYS_lsetxattr, "setxattr", Use::kWrite, 0),
    Path(SYS_removexattr, "removexattr", Use::kWrite, 0),
    Path(SYS_lremovexattr, "removexattr", Use::kWrite, 0),
    Path(SYS_inotify_add_watch, "watch", Use::kLook, 1),
    Address(SYS_connect, "connect", Use::kConnect, 1),
    Address(SYS_bind, "bind", Use::kBind, 1),
    Address(SYS_sendto, "send", Use::kConnect, 4),
    Message(SYS_sendmsg),
    Message(SYS_sendmmsg),
});

constexpr std::uint32_t ArgumentAt(std::int8_t index) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) +
                                    sizeof(std::uint64_t) * static_cast<unsigned>(index));
}

// fstat(2) is newfstatat(2) with no path in today's libraries, and send(2) is sendto(2) with no address: both frequent,
// both without anything to report.
std::vector<sock_filter> MakeFilter() {
  const sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const sock_filter trace = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
  std::vector<sock_filter> code = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArch, 1, 0),
      allow,
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  for (const TracedCall& call : kCalls) {
    const auto number = static_cast<std::uint32_t>(call.number);
    if (call.number == SYS_newfstatat || call.number == SYS_statx) {
      code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4));
      code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ArgumentAt(call.flags)));
      code.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, AT_EMPTY_PATH, 0, 1));
      code.push_back(allow);
    } else if (call.number == SYS_sendto) {
      code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 6));
      code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ArgumentAt(call.address)));
      code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3));
      code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ArgumentAt(call.address) + 4));  // Little-endian, both of them.
      code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1));
      code.push_back(allow);
    } else {
      code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    }
    code.push_back(trace);
  }
  code.push_back(allow);
  return code;
}

}  // namespace

std::span<const TracedCall> TracedCalls() { return kCalls; }

const TracedCall* FindTraced(int number) {
  const auto* const found = std::ranges::find(kCalls, number, &TracedCall::number);
  return found == kCalls.end() ? nullptr : found;
}

std::span<const sock_filter> TraceFilter() {
  static const std::vector<sock_filter> kFilter = MakeFilter();
  return kFilter;
}

Use UseOfOpen(std::uint64_t flags) {
  if ((flags & O_CREAT) != 0) return Use::kCreate;
  const std::uint64_t mode = flags & O_ACCMODE;
  if (mode == O_WRONLY || mode == O_RDWR || (flags & O_TRUNC) != 0) return Use::kWrite;
  if ((flags & O_PATH) != 0) return Use::kLook;
  return Use::kRead;
}

}  // namespace belljar::plan
