// plan/hidden.h: what files.hide names, where it holds patterns, as it is on the host now.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "plan/compile.h"

namespace belljar::plan {

/// The paths inside that `pattern` (an absolute path of the guest) stands for, sorted. What a later tree covers is that
/// one's, and what lies in `kernel` (paths of the host) is covered anyway. An error where there is too much to look
/// through, or a directory can't be read.
std::expected<std::vector<std::string>, CompileError> FindHidden(const std::string& pattern,
                                                                 const std::vector<Shown>& trees,
                                                                 const std::vector<std::string>& kernel);

/// Whether patterns stand for the same names as they did.
bool IsAsBefore(const HiddenNames& hidden);

}  // namespace belljar::plan
