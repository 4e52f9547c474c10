// plan/command.h: finds out what argv[0] means: a program of the system, of a mount, or of an interpreter's prefix
// somewhere else on the host (a virtual environment, pyenv, conda, node in a home directory).
#pragma once

#include <string>
#include <vector>

#include <belljar/policy.h>

namespace belljar::plan {

struct Command {
  std::vector<std::string> exec_paths;  ///< Candidates inside, in order.
  std::vector<std::string> read_only;   ///< Host files and directories to be seen at their own path.
  std::string path;                     ///< PATH inside.
};

/// `caller_path` is the caller's PATH.
Command ResolveCommand(const Policy& policy, const std::string& argv0, const std::string& caller_path);

}  // namespace belljar::plan
