#include "sys/seccomp_listener.h"

#include <linux/seccomp.h>
#include <sys/ioctl.h>

#include <cerrno>

namespace belljar::sys {

std::optional<SeccompListener::Call> SeccompListener::Receive() {
  seccomp_notif call{};
  // ENOENT: the caller died between the wake-up and now.
  if (::ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) return std::nullopt;
  return Call{.id = call.id, .number = call.data.nr};
}

void SeccompListener::Refuse(const Call& call, int error) {
  seccomp_notif_resp answer{};
  answer.id = call.id;
  answer.error = -error;
  (void)::ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

}  // namespace belljar::sys
