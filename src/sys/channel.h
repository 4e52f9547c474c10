// sys/channel.h: what kind of thing a descriptor is that is to be handed to a guest.
#pragma once

#include <string>

#include <belljar/error.h>

namespace belljar::sys {

/// "pipe", "socket" or "file". An Error for all else, which leads further than to its own bytes: a directory opens the
/// host's tree, a terminal can be typed into, and behind the names of the kernel's own filesystems are processes and
/// settings.
Expected<std::string> KindOfChannel(int fd);

/// Whether it was opened for both.
bool IsReadWrite(int fd);

}  // namespace belljar::sys
