#include "launch/janitor.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "sys/process.h"

namespace belljar::launch {
Expected<Janitor> Janitor::Start(const jail::Leftovers& leftovers) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(sys::ErrnoError("make a pipe to the janitor", errno));
  base::UniqueFd read_end(ends[0]);
  Janitor janitor;
  janitor.lifeline_.Reset(ends[1]);
  janitor.pid_ = sys::Clone({});
  if (janitor.pid_ == 0) {
    // Holds nothing of its owner: neither its pipes nor the terminal.
    const auto keep = static_cast<unsigned>(read_end.get());
    if (keep > 0) ::close_range(0, keep - 1, 0);
    ::close_range(keep + 1, ~0U, 0);
    jail::Janitor(leftovers, read_end.get());
  }
  if (janitor.pid_ < 0) return std::unexpected(sys::ErrnoError("start the janitor", errno));
  return janitor;
}

void Janitor::Dismiss() {
  if (lifeline_.valid()) (void)!::write(lifeline_.get(), "q", 1);
}

Janitor::~Janitor() {
  if (pid_ <= 0) return;
  lifeline_.Reset();
  // Waited for: an orphan would be left to a pid 1 that may not reap, as in many containers.
  while (::waitpid(pid_, nullptr, __WALL) < 0 && errno == EINTR) {
  }
}

}  // namespace belljar::launch
