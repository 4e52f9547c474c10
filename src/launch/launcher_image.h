// launch/launcher_image.h: the program belljar-launcher, carried in the library so that nobody has to install it.
#pragma once

#include <string_view>

namespace belljar::launch {

std::string_view LauncherImage();

/// Where it is installed, for hosts that forbid to execute what is only in memory.
const char* LauncherPath();

}  // namespace belljar::launch
