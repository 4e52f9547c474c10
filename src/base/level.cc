#include <belljar/level.h>

namespace belljar {

std::string_view Name(Level level) {
  switch (level) {
    case Level::kNone: return "none";
    case Level::kProcess: return "process";
    case Level::kKernel: return "kernel";
    case Level::kContainer: return "container";
  }
  return "invalid";
}

}  // namespace belljar
