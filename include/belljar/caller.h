// belljar/caller.h: on whose behalf a run is made: an environment and a working directory, as a value.
//
//   belljar::Caller caller = belljar::Caller::OfThisProcess();
//   caller.Set("PATH", "/opt/tools/bin:/usr/bin");
//   engine->Run(policy, {"tool"}, {.caller = caller});
//
// Nothing of it gets inside by itself: programs are looked for on its PATH and relative to its directory, the names in
// environment.pass are copied from it, and what must lie on the host lies in its TMPDIR. A program that runs commands
// for others fills it with theirs. A plain value.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belljar {

struct Caller {
  std::string directory = "/";           ///< Absolute.
  std::vector<std::string> environment;  ///< "NAME=value"; of two with one name the first counts.

  /// The environment and directory of this process as they are now. Not while another thread changes either.
  static Caller OfThisProcess();
  std::optional<std::string> Variable(std::string_view name) const;
  Caller& Set(std::string_view name, std::string_view value);
};

}  // namespace belljar
