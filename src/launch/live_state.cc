#include "launch/live_state.h"

#include <poll.h>

#include <cerrno>

namespace belljar::launch {

Expected<std::unique_ptr<LiveState>> LiveState::Make(const Limits& limits) {
  auto end = CancelToken::Make();
  auto ended = CancelToken::Make();
  if (!end) return std::unexpected(end.error());
  if (!ended) return std::unexpected(ended.error());
  return std::unique_ptr<LiveState>(new LiveState(std::move(*end), std::move(*ended), limits));
}

void LiveState::AwaitEnd() const {
  pollfd wait{ended_.fd(), POLLIN, 0};
  while (::poll(&wait, 1, -1) < 0 && errno == EINTR) {
  }
}

}  // namespace belljar::launch
