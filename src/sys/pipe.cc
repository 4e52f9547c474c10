#include "sys/pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "sys/process.h"

namespace belljar::sys {

Expected<Pipe> MakePipe(const std::string& step) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(ErrnoError(step, errno));
  Pipe pipe{base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
  if (!MoveAboveStreams(pipe.read) || !MoveAboveStreams(pipe.write)) return std::unexpected(ErrnoError(step, errno));
  return pipe;
}

void Signal(Pipe& pipe) {
  (void)!::write(pipe.write.get(), "", 1);
  pipe.write.Reset();
}

bool MoveAboveStreams(base::UniqueFd& fd) { return MoveAbove(fd, STDERR_FILENO); }

bool MoveAbove(base::UniqueFd& fd, int other) {
  if (fd.get() <= other) fd.Reset(::fcntl(fd.get(), F_DUPFD_CLOEXEC, other + 1));
  return fd.valid();
}

}  // namespace belljar::sys
