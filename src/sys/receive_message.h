// sys/receive_message.h: one message of a unix socket, with what comes along beside its bytes.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <span>

namespace belljar::sys {

/// recvmsg() until no signal is in its way. What `message` tells of control data lies in `control`, which has to be
/// aligned like a cmsghdr.
inline ssize_t ReceiveMessage(int socket, std::span<std::byte> bytes, std::span<char> control, int flags,
                              msghdr& message) {
  iovec part{bytes.data(), bytes.size()};
  message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  while ((got = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  message.msg_iov = nullptr;
  return got;
}

}  // namespace belljar::sys
