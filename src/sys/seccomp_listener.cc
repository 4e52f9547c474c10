#include "sys/seccomp_listener.h"

#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>

namespace belljar::sys {

std::optional<SeccompListener::Call> SeccompListener::Receive() {
  seccomp_notif call{};
  // ENOENT: the caller died between the wake-up and now.
  if (::ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) return std::nullopt;
  Call received{.id = call.id, .number = call.data.nr};
  std::ranges::copy(call.data.args, received.arguments.begin());
  return received;
}

void SeccompListener::Refuse(const Call& call, int error) {
  seccomp_notif_resp answer{};
  answer.id = call.id;
  answer.error = -error;
  Send(answer);
}

bool SeccompListener::LetGoOn(const Call& call) {
  if (!SharedMemoryAsked(call)) return false;
  seccomp_notif_resp answer{};
  answer.id = call.id;
  answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  Send(answer);
  return true;
}

void SeccompListener::Send(seccomp_notif_resp& answer) {
  int done = 0;
  while ((done = ::ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer)) != 0 && errno == EINTR) {
  }
  // ENOENT: the caller is dead. Any other that got no answer would wait for ever; without a listener the kernel
  // answers.
  if (done != 0 && errno != ENOENT) Close();
}

std::optional<SharedMemory> SharedMemoryAsked(const SeccompListener::Call& call) {
  // SECURITY: flags that other rules of the filter refuse (huge pages) or that nobody knows yet are not on this list.
  constexpr std::uint64_t kAsked = MAP_SHARED | MAP_ANONYMOUS;
  constexpr std::uint64_t kUsual =
      kAsked | MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_POPULATE | MAP_NONBLOCK | MAP_NORESERVE | MAP_LOCKED | MAP_STACK;
  constexpr std::uint64_t kUsualSegment = IPC_CREAT | IPC_EXCL | SHM_NORESERVE | 0777;
  // The kernel takes flags as int in one of the two and as long in the other; whoever sets high bits means no good.
  if (call.number == SYS_mmap && (call.arguments[3] & ~kUsual) == 0 && (call.arguments[3] & kAsked) == kAsked) {
    return SharedMemory{.bytes = call.arguments[1]};
  }
  if (call.number == SYS_shmget && (call.arguments[2] & ~kUsualSegment) == 0) {
    return SharedMemory{.bytes = call.arguments[1], .outlives = true};
  }
  return std::nullopt;
}

}  // namespace belljar::sys
