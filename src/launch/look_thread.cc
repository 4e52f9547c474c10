#include "launch/look_thread.h"

#include <poll.h>

#include <ctime>
#include <system_error>

#include "sys/process.h"

namespace belljar::launch {

bool LookThread::Begin() {
  for (sys::Pipe* signal : {&stop_, &news_}) {
    auto made = sys::MakePipe("make a pipe");
    if (!made) return false;
    *signal = std::move(*made);
  }
  try {
    const sys::BlockedSignals blocked;  // The host program's handlers are not its.
    thread_ = std::thread([this] { Work(); });
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

void LookThread::Stop() {
  if (!thread_.joinable()) return;
  sys::Signal(stop_);
  thread_.join();
}

void LookThread::Work() {
  for (std::uint64_t next = 0; (next = looker_.next()) != Looker::kNever;) {
    const std::uint64_t now = sys::NowNs();
    const std::uint64_t left = next > now ? next - now : 0;
    const timespec timeout{static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
    pollfd wait{stop_.read.get(), POLLIN, 0};
    if (::ppoll(&wait, 1, &timeout, nullptr) > 0) return;
    const std::uint64_t began = sys::NowNs();
    if (began < next) continue;
    busy_since_ = began;
    const KillReason found = looker_.Look(began);
    busy_since_ = Looker::kNever;
    if (found == KillReason::kNone) continue;
    reason_ = found;
    sys::Signal(news_);
    return;
  }
}

}  // namespace belljar::launch
