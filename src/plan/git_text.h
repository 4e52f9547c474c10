// plan/git_text.h: what git's own files say about where it looks for more. Pure functions over bytes that a guest may
// have written, so they are fuzzed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::plan {

struct GitConfig {
  std::vector<std::string> hooks;     ///< core.hooksPath. git takes the last one of all its files.
  std::vector<std::string> included;  ///< include.path and includeIf.*.path, whether or not the condition holds.
  std::optional<std::string> worktree;
  bool sha256 = false;  ///< The names of objects have 32 bytes.
};

/// Of a line that git would not understand no more is taken than of an empty one.
GitConfig ParseGitConfig(std::string_view text);

/// The paths in an index that are repositories of their own (submodules, and what was added like one). Of an index
/// that is cut off, those before its end. Nothing where its version is not known.
std::optional<std::vector<std::string>> GitLinks(std::string_view index, bool sha256);

}  // namespace belljar::plan
