// sys/pipe.h: a pipe that is closed on exec.
#pragma once

#include <string>

#include <belljar/error.h>

#include "base/unique_fd.h"

namespace belljar::sys {

struct Pipe {
  base::UniqueFd read;
  base::UniqueFd write;
};

/// Both ends are above the standard descriptors, which a careless caller may have closed. `step` is what an error says.
Expected<Pipe> MakePipe(const std::string& step);

/// Makes the other end readable for good: by a byte, since a forked copy of this process may have this end too, and by
/// closing it, which can't fail.
void Signal(Pipe& pipe);

/// Gives it a number above those of the standard streams, which may be closed in a host program: the command's own
/// streams would replace it. False with errno when there is none.
bool MoveAboveStreams(base::UniqueFd& fd);

/// Gives it a number above another one, so that it is closed sooner when this process ends. False with errno.
bool MoveAbove(base::UniqueFd& fd, int other);

}  // namespace belljar::sys
