// plan/pattern.h: names of files with "*" and "?" in them, as files.hide and files.protect take them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace belljar::plan {

/// Whether a part of a path stands for more names than itself. It always stands for itself too.
bool IsPattern(std::string_view part);

/// "*" is any run of characters, also at the start of a hidden name, and "?" is one; nothing else is special.
bool Matches(std::string_view pattern, const std::string& name);

/// The parts of a path, from its first slash on or without one.
std::vector<std::string_view> Parts(std::string_view path);

/// A part of its own that stands for any number of directories, none included.
inline constexpr std::string_view kAnyDepth = "**";

}  // namespace belljar::plan
