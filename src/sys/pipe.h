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

/// Gives it a number above those of the standard streams, which may be closed in a host program: the command's own
/// streams would replace it. False with errno when there is none.
bool MoveAboveStreams(base::UniqueFd& fd);

}  // namespace belljar::sys
