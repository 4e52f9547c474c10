// belljar/limit.h: the value of a limit that was switched off by writing "unlimited".
#pragma once

#include <cstdint>
#include <limits>

namespace belljar {

inline constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

}  // namespace belljar
