#include "launch/live_state.h"

#include <poll.h>

#include <cerrno>
#include <utility>

#include "launch/reception.h"

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

std::optional<Connection> LiveState::TakeReady() {
  const std::lock_guard lock(ready_mutex_);
  if (ready_ && !ready_->ready()) ready_.reset();
  return std::exchange(ready_, std::nullopt);
}

void LiveState::KeepReady(Connection steward) {
  const std::lock_guard lock(ready_mutex_);
  ready_ = std::move(steward);
  ready_pid_ = 0;
}

bool LiveState::has_ready() {
  const std::lock_guard lock(ready_mutex_);
  return ready_.has_value();
}

bool LiveState::IsReady(pid_t pid) {
  const std::lock_guard lock(ready_mutex_);
  if (!ready_) return false;
  if (ready_pid_ == 0) {
    // By the kernel's word for who sent its first report, which stays there for the command's supervisor.
    Received first;
    if (PeekReport(ready_->control.get(), first) == Reception::kReport) ready_pid_ = first.sender;
  }
  return ready_pid_ != 0 && ready_pid_ == pid;
}

}  // namespace belljar::launch
