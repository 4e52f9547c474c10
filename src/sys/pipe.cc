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
  for (base::UniqueFd* end : {&pipe.read, &pipe.write}) {
    if (end->get() > 2) continue;
    end->Reset(::fcntl(end->get(), F_DUPFD_CLOEXEC, 3));
    if (!end->valid()) return std::unexpected(ErrnoError(step, errno));
  }
  return pipe;
}

}  // namespace belljar::sys
