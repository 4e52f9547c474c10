#include "launch/stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include <belljar/limit.h>

namespace belljar::launch {
namespace {

bool IsRegularFile(int fd) {
  struct stat status{};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

bool Ready(int fd, short events) {
  pollfd poll{fd, events, 0};
  return ::poll(&poll, 1, 0) > 0;
}

}  // namespace

void SetNonBlocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

OutputPump::OutputPump(int source, std::uint64_t limit, int target)
    : source_(source),
      target_(target),
      limit_(limit),
      capture_(kKept),
      streamed_(true),
      target_may_block_(!IsRegularFile(target)) {}

Flow OutputPump::Flush() {
  while (target_ >= 0 && !pending_.empty()) {
    std::size_t size = pending_.size();
    if (target_may_block_) {
      // The caller's descriptor may be shared, so it keeps its mode. A pipe that polls writable takes PIPE_BUF at once.
      if (!Ready(target_, POLLOUT)) return Flow::kWaitForTarget;
      size = std::min<std::size_t>(size, PIPE_BUF);
    }
    const ssize_t written = ::write(target_, pending_.data(), size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) return Flow::kWaitForTarget;
    // Nobody reads any more: the guest finds out the usual way, when its own end is closed.
    if (written < 0) return Flow::kEnded;
    pending_.remove_prefix(static_cast<std::size_t>(written));
  }
  return Flow::kWaitForSource;
}

Flow OutputPump::Pump() {
  if (buffer_ == nullptr) buffer_ = std::make_unique_for_overwrite<std::array<char, kChunk>>();
  if (const Flow flow = Flush(); flow != Flow::kWaitForSource) return flow;
  // One chunk at a time: a flood would never let a loop end here, and there is a deadline to keep.
  ssize_t got = 0;
  while ((got = ::read(source_, buffer_->data(), buffer_->size())) < 0 && errno == EINTR) {
  }
  if (got < 0 && errno == EAGAIN) return Flow::kWaitForSource;
  if (stopped_ != nullptr && *stopped_) return Flow::kEnded;
  if (got <= 0) return Flow::kEnded;  // EIO: a terminal that nobody holds any more.
  const std::string_view data(buffer_->data(), static_cast<std::size_t>(got));
  capture_.Append(data);
  const bool over = streamed_ && limit_ != kUnlimited && capture_.bytes() > limit_;
  // What was still allowed is passed on, if it can be without waiting.
  pending_ =
      over ? data.substr(0, data.size() - std::min<std::uint64_t>(data.size(), capture_.bytes() - limit_)) : data;
  if (told_ && !pending_.empty()) told_(pending_);
  const Flow flow = Flush();
  return over ? Flow::kOverLimit : flow;
}

InputPump::InputPump(std::string_view text, int source, int target)
    : source_(source), target_(target), source_can_wait_(source >= 0 && !IsRegularFile(source)), pending_(text) {}

void InputPump::OwnText() {
  text_ = std::make_unique<std::string>(pending_);
  pending_ = *text_;
}

Flow InputPump::Pump() {
  for (;;) {
    while (!pending_.empty()) {
      if (stopped_ != nullptr && *stopped_) return Flow::kEnded;
      const ssize_t written = ::write(target_, pending_.data(), pending_.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0 && errno == EAGAIN) return Flow::kWaitForTarget;
      if (written < 0) return Flow::kEnded;
      pending_.remove_prefix(static_cast<std::size_t>(written));
    }
    if (source_ < 0 || (stopped_ != nullptr && *stopped_)) return Flow::kEnded;
    if (source_can_wait_ && !Ready(source_, POLLIN)) return Flow::kWaitForSource;
    if (buffer_ == nullptr) buffer_ = std::make_unique_for_overwrite<std::array<char, kChunk>>();
    const ssize_t got = ::read(source_, buffer_->data(), buffer_->size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return Flow::kWaitForSource;
    if (got <= 0) return Flow::kEnded;
    pending_ = std::string_view(buffer_->data(), static_cast<std::size_t>(got));
  }
}

}  // namespace belljar::launch
