// The control channel: datagrams of any size and content, with and without descriptors, and what the parent makes of
// them.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "launch/reception.h"
#include "launch/verdict.h"
#include "result_check.h"

namespace {

using belljar::base::UniqueFd;
using belljar::fuzz::Require;

int OpenDescriptors() {
  int count = 0;
  for (int fd = 0; fd < 64; ++fd) count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

void Send(int socket, const void* data, std::size_t size, int descriptors) {
  iovec part{const_cast<void*>(data), size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(8 * sizeof(int))> control{};
  if (descriptors > 0) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(static_cast<std::size_t>(descriptors) * sizeof(int));
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(static_cast<std::size_t>(descriptors) * sizeof(int));
    for (int i = 0; i < descriptors; ++i) {
      std::memcpy(CMSG_DATA(head) + static_cast<std::size_t>(i) * sizeof(int), &socket, sizeof socket);
    }
  }
  (void)::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// As Supervisor does, without what a report starts.
void Observe(const belljar::plan::Report& report, belljar::launch::Observed& observed) {
  using Kind = belljar::plan::ReportKind;
  if (report.kind == Kind::kSetupFailed) observed.setup_failed = report;
  if (report.kind == Kind::kExecFailed) observed.exec_failed = report;
  if (report.kind == Kind::kStarted) observed.started = true;
  if (report.kind == Kind::kEnded || report.kind == Kind::kDeadline) observed.ended = report;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int before = OpenDescriptors();
  {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return 0;
    const UniqueFd ours(ends[0]);
    UniqueFd theirs(ends[1]);
    belljar::launch::Observed observed;
    std::size_t reports = 0;
    // Each message: its size, how many descriptors, then its bytes.
    while (size >= 2 && reports < 16) {
      const std::size_t length = std::min<std::size_t>(data[0], size - 2);
      Send(theirs.get(), data + 2, length, data[1] % 9);
      belljar::launch::Received received;
      const auto reception = belljar::launch::ReceiveReport(ours.get(), received);
      const bool fits = length == sizeof(belljar::plan::Report);
      Require(fits || reception != belljar::launch::Reception::kReport, "only whole reports are taken");
      if (reception == belljar::launch::Reception::kReport) Observe(received.report, observed);
      data += 2 + length;
      size -= 2 + length;
      ++reports;
    }
    belljar::Result result;
    belljar::launch::Decide(observed, belljar::Policy(), "a step", result);
    belljar::launch::AddLimitDenials(observed, belljar::Policy(), result);
    Require(
        !result.ok() || (observed.ended && WIFEXITED(observed.ended->status) &&
                         WEXITSTATUS(observed.ended->status) == 0 && !observed.setup_failed && !observed.exec_failed),
        "no success without a report of one");
    belljar::fuzz::CheckResult(result);
    theirs.Reset();
    belljar::launch::Received last;
    Require(belljar::launch::ReceiveReport(ours.get(), last) == belljar::launch::Reception::kClosed,
            "a closed end is seen");
  }
  Require(OpenDescriptors() == before, "no descriptor of a guest's stays open");
  return 0;
}
