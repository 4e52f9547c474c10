#include "launch/connection.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "sys/pipe.h"
#include "sys/process.h"
#include "sys/send_descriptors.h"

namespace belljar::launch {

Expected<void> SendDescriptors(int socket, char word, std::span<const int> what, const char* step) {
  const std::span<const char> words(&word, 1);
  if (sys::SendDescriptors(socket, std::as_bytes(words), what)) return {};
  return std::unexpected(sys::ErrnoError(step, errno));
}

Expected<base::UniqueFd> Connection::Open() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return std::unexpected(sys::ErrnoError("make a control socket", errno));
  }
  control.Reset(ends[0]);
  base::UniqueFd theirs(ends[1]);
  if (!sys::MoveAboveStreams(theirs)) return std::unexpected(sys::ErrnoError("make a control socket", errno));
  return theirs;
}

// Makes the command's streams and sends its ends, which this process has no more when a guest may run: see jail's
// ReceiveStreams. For the same reason what fits of the input is written now.
Expected<void> Connection::SendStreams(Owner owner, const Attached& given) {
  std::array<base::UniqueFd, 3> theirs;
  const auto make = [&](std::size_t stream, base::UniqueFd& ours) -> Expected<void> {
    auto pipe = sys::MakePipe("make a pipe for the command");
    if (!pipe) return std::unexpected(pipe.error());
    const bool reads = stream == STDIN_FILENO;
    theirs[stream] = std::move(reads ? pipe->read : pipe->write);
    ours = std::move(reads ? pipe->write : pipe->read);
    SetNonBlocking(ours.get());
    // The guest may reopen its streams by /dev/stdout, so they are its own.
    if (::fchown(theirs[stream].get(), owner.uid, owner.gid) == 0) return {};
    return std::unexpected(sys::ErrnoError("give the streams to the guest", errno));
  };
  std::vector<int> numbers;
  if (!given.terminal) {
    if (given.source < 0 && given.text.empty()) {
      theirs[STDIN_FILENO].Reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      if (!theirs[STDIN_FILENO].valid()) return std::unexpected(sys::ErrnoError("open /dev/null", errno));
    } else {
      if (auto made = make(STDIN_FILENO, input); !made) return made;
      feed = InputPump(given.text, given.source, input.get());
      if (feed.Pump() == Flow::kEnded) input.Reset();
    }
    if (auto made = make(STDOUT_FILENO, output); !made) return made;
    if (auto made = make(STDERR_FILENO, error); !made) return made;
    for (const base::UniqueFd& fd : theirs) numbers.push_back(fd.get());
    // SECURITY: a process that is killed lets go of its files from the highest number to the lowest (what the last
    // descriptor of a file has left to do is done last in, first out), and may sleep at a pipe of a guest that lives.
    // The end of the control socket, which ends the guest, comes first.
    if (!sys::MoveAbove(control, std::max({input.get(), output.get(), error.get()}))) {
      return std::unexpected(sys::ErrnoError("make a control socket", errno));
    }
  }
  for (const Channel& channel : given.channels) numbers.push_back(channel.fd);
  if (numbers.empty()) return {};
  return SendDescriptors(control.get(), 's', numbers, "hand the command its streams");
}

Expected<void> Connection::SendCommand(std::span<const std::uint64_t> block) const {
  if (::send(control.get(), block.data(), block.size_bytes(), MSG_NOSIGNAL) >= 0) return {};
  return std::unexpected(sys::ErrnoError("hand over the command", errno));
}

bool Connection::ready() const {
  pollfd end{control.get(), 0, 0};
  return ::poll(&end, 1, 0) == 0;
}

Expected<void> Connection::Ask(const plan::Order& order, const char* step) const {
  if (::send(control.get(), &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return {};
  if (errno == EPIPE || errno == ECONNRESET) {
    return std::unexpected(Error{.step = step, .message = "the command has ended", .hint = {}});
  }
  return std::unexpected(sys::ErrnoError(step, errno));
}

void Connection::Stop() const { ::shutdown(control.get(), SHUT_WR); }

}  // namespace belljar::launch
