// belljar/level.h: how strong the wall around a run is.
#pragma once

#include <cstdint>
#include <string_view>

namespace belljar {

/// Each level holds all that the ones before it hold. See SECURITY.md for what each promises.
enum class Level : std::uint8_t { kNone, kProcess, kKernel, kContainer };
std::string_view Name(Level level);

}  // namespace belljar
