#include "launch/janitor.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "sys/pipe.h"
#include "sys/process.h"

namespace belljar::launch {
namespace {

// Holds nothing of its owner: neither its pipes nor the terminal.
void KeepOnly(jail::JanitorEnds ends) {
  const auto low = static_cast<unsigned>(std::min(ends.lifeline, ends.network_ready));
  const auto high = static_cast<unsigned>(std::max(ends.lifeline, ends.network_ready));
  if (ends.network_ready < 0) {
    if (high > 0) ::close_range(0, high - 1, 0);
  } else {
    if (low > 0) ::close_range(0, low - 1, 0);
    if (high > low + 1) ::close_range(low + 1, high - 1, 0);
  }
  ::close_range(high + 1, ~0U, 0);
}

}  // namespace

Expected<Janitor> Janitor::Start(const jail::Leftovers& leftovers, Network network) {
  auto life = sys::MakePipe("make a pipe to the janitor");
  if (!life) return std::unexpected(life.error());
  base::UniqueFd ready;
  Janitor janitor;
  if (network == Network::kMake) {
    auto pipe = sys::MakePipe("make a pipe to the janitor");
    if (!pipe) return std::unexpected(pipe.error());
    janitor.network_ready_ = std::move(pipe->read);
    ready = std::move(pipe->write);
  }
  janitor.lifeline_ = std::move(life->write);
  int pidfd = -1;
  janitor.pid_ = sys::Clone({.pidfd = &pidfd});
  if (janitor.pid_ == 0) {
    const jail::JanitorEnds ends{.lifeline = life->read.get(), .network_ready = ready.get()};
    janitor.lifeline_.Reset();  // By itself first: with this end open it would wait for itself.
    KeepOnly(ends);
    jail::Janitor(leftovers, ends);
  }
  if (janitor.pid_ < 0) return std::unexpected(sys::ErrnoError("start the janitor", errno));
  janitor.pidfd_.Reset(pidfd);
  return janitor;
}

void Janitor::Leave() {
  if (pid_ > 0) (void)!::write(lifeline_.get(), "l", 1);
  Dismiss();
  pid_ = -1;
}

Janitor::~Janitor() {
  if (pid_ <= 0) return;
  Dismiss();
  (void)sys::SendSignal(pidfd_.get(), SIGCONT);  // One that somebody has stopped would be waited for in vain.
  // Waited for: an orphan would be left to a pid 1 that may not reap, as in many containers.
  while (::waitpid(pid_, nullptr, __WALL) < 0 && errno == EINTR) {
  }
}

}  // namespace belljar::launch
