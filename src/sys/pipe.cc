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

bool MoveAboveStreams(base::UniqueFd& fd) {
  if (fd.get() <= STDERR_FILENO) fd.Reset(::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  return fd.valid();
}

}  // namespace belljar::sys
