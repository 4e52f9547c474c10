#include "sys/send_descriptors.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace belljar::sys {

bool SendDescriptors(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  if (fds.size() > kMostSentDescriptors) {
    errno = EINVAL;
    return false;
  }
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostSentDescriptors * sizeof(int))> area{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = area.data();
  message.msg_controllen = CMSG_SPACE(fds.size_bytes());
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(fds.size_bytes());
  std::memcpy(CMSG_DATA(head), fds.data(), fds.size_bytes());
  ssize_t sent = 0;
  while ((sent = ::sendmsg(socket, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
  }
  return sent >= 0;
}

}  // namespace belljar::sys
