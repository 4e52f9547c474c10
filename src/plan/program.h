// plan/program.h: finds out what argv[0] means: a program of the system, of a mount, or of an interpreter's prefix
// somewhere else on the host (a virtual environment, pyenv, conda, node in a home directory).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <belljar/caller.h>
#include <belljar/error.h>
#include <belljar/policy.h>
#include <belljar/result.h>

#include "sys/files.h"

namespace belljar::plan {

struct Program {
  std::vector<std::string> exec_paths;  ///< Candidates inside, in order.
  std::vector<Brought> brought;         ///< To be seen read-only at their own path, which is a real one.
  std::vector<sys::Link> links;         ///< To be made inside as they are on the host, so that names lead there.
  std::string path;                     ///< PATH inside.
  std::optional<Error> refusal;         ///< It needs something that is not brought along: which flag grants it.
};

/// PATH inside, unless the policy sets another.
inline constexpr std::string_view kSystemPath = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// Where a command of a live sandbox may be, inside: its own name where that has a slash, or its places in `path`.
std::vector<std::string> LookInside(const std::string& argv0, std::string_view path);

/// A name without a slash is looked for on the caller's PATH, one with a slash from the caller's directory.
Program FindProgram(const Policy& policy, const std::string& argv0, const Caller& caller);

}  // namespace belljar::plan
