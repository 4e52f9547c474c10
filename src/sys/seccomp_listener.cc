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
  int done = 0;
  while ((done = ::ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer)) != 0 && errno == EINTR) {
  }
  // ENOENT: the caller is dead. Any other that got no answer would wait for ever; without a listener the kernel
  // answers.
  if (done != 0 && errno != ENOENT) Close();
}

}  // namespace belljar::sys
