// plan/git_places.h: where in a directory git on the host, called at its top, takes configuration and hooks from.
#pragma once

#include <set>
#include <string>

namespace belljar::plan {

/// All as seen from the directory; "" is itself.
struct GitPlaces {
  std::set<std::string> repositories;  ///< What .git is elsewhere: of submodules, of linked worktrees, where a .git
                                       ///< file leads, the directory itself where it is laid out as one.
  std::set<std::string> dots;          ///< .git, at the top of working trees below the first one.
  std::set<std::string> configs;       ///< Files that a configuration includes.
  std::set<std::string> hooks;         ///< Directories that core.hooksPath names.
  std::set<std::string> unsearched;    ///< What can't be read, or is too much to.
};

/// SECURITY: a guest may have made all of it; git is not asked, as it would obey. `home` is what ~ stands for.
GitPlaces FindGitPlaces(const std::string& top, const std::string& home);

}  // namespace belljar::plan
