// sys/send_descriptors.h: bytes and descriptors over a unix socket, in one message.
#pragma once

#include <cstddef>
#include <span>

namespace belljar::sys {

/// As many as one message carries (SCM_MAX_FD).
inline constexpr std::size_t kMostSentDescriptors = 253;

/// False with errno.
bool SendDescriptors(int socket, std::span<const std::byte> bytes, std::span<const int> fds);

}  // namespace belljar::sys
