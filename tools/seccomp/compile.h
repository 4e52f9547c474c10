// seccomp/compile.h: what every call means → the instructions of a filter.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "seccomp/resolve.h"

namespace belljar::seccomp {

/// Who answers reported denials: a listener or the kernel.
enum class Answer { kNotify, kErrno };

/// What happens to numbers that are not in the table, and to foreign architectures.
enum class Others {
  kRefuse,  ///< Unknown numbers ENOSYS; other architectures and x32 are killed. For the first filter.
  kPass,    ///< Allowed: for a filter that is stacked on one which refuses.
};

std::vector<sock_filter> CompileFilter(const CallTable& table, Arch arch, Answer answer, Others others);

}  // namespace belljar::seccomp
