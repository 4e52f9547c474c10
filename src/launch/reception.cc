#include "launch/reception.h"

#include <sys/socket.h>

#include <array>
#include <cstring>
#include <span>

#include "sys/receive_message.h"

namespace belljar::launch {
namespace {

void TakeDescriptors(const cmsghdr& head, base::UniqueFd& fd) {
  const std::size_t count = (head.cmsg_len - CMSG_LEN(0)) / sizeof(int);
  for (std::size_t i = 0; i < count; ++i) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(&head) + i * sizeof number, sizeof number);
    base::UniqueFd each(number);
    if (!fd.valid()) fd = std::move(each);
  }
}

Reception Receive(int socket, Received& received, int flags) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(ucred))> control{};
  msghdr message{};
  const ssize_t got = sys::ReceiveMessage(socket, std::as_writable_bytes(std::span(&received.report, 1)), control,
                                          flags | MSG_DONTWAIT, message);
  if (got < 0) return Reception::kNothing;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET) continue;
    if (head->cmsg_type == SCM_RIGHTS) TakeDescriptors(*head, received.fd);
    if (head->cmsg_type == SCM_CREDENTIALS && head->cmsg_len >= CMSG_LEN(sizeof(ucred))) {
      ucred sender{};
      std::memcpy(&sender, CMSG_DATA(head), sizeof sender);
      received.sender = sender.pid;
    }
  }
  if (got == 0) return Reception::kClosed;
  const bool whole = got == static_cast<ssize_t>(sizeof received.report) && (message.msg_flags & MSG_TRUNC) == 0;
  return whole && received.report.kind <= plan::kLastReportKind ? Reception::kReport : Reception::kForeign;
}

}  // namespace

Reception ReceiveReport(int socket, Received& received) { return Receive(socket, received, 0); }

Reception PeekReport(int socket, Received& received) { return Receive(socket, received, MSG_PEEK); }

}  // namespace belljar::launch
