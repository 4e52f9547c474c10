// plan/bounds.h: what a run may have of things that no cgroup counts, whatever its policy: the receipt says what that
// comes to, and launch ends who has more.
#pragma once

#include <cstdint>

namespace belljar::plan {

/// Files that one thread may wait for in poll() or select(), by profiles/kernel.seccomp.
inline constexpr std::uint64_t kMostPolledByThread = 2047;

/// Open descriptors of all processes: as many as default limits allow. To look at each takes half a second, and what
/// one has in the kernel is 33 MB for all.
inline constexpr std::uint64_t kMostOpen = 131'072;

}  // namespace belljar::plan
