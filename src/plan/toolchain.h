// plan/toolchain.h: which directory a program outside the system may bring along, read-only, without being asked for.
//
// SECURITY: whatever a program, its links and the files beside it say may have been written by an attacker: a hostile
// checkout, or an earlier guest. So all paths here are real (no link on the way), a directory counts only when it is
// plainly a toolchain's and holds nothing else, and a link may lead only to one that the caller or the system owns.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include <belljar/policy.h>

namespace belljar::plan {

struct Toolchain {
  std::string prefix;  ///< Its bin directory holds the program.
  std::string kind;    ///< "Python virtual environment", "Node.js" …
};

/// How the caller came to it.
enum class Named : std::uint8_t {
  kByCaller,  ///< The caller wrote it, or has its directory on PATH.
  kByLink,    ///< A link said so.
};

/// Why nothing is brought along.
struct Withheld {
  std::string why;     ///< A sentence.
  std::string prefix;  ///< Set: there is a toolchain, but it needs a grant.
};

/// The toolchain that the program at this real path belongs to. `home` is the caller's, or empty.
std::expected<Toolchain, Withheld> FindToolchain(const Policy& policy, const std::string& home,
                                                 const std::string& program, Named named);

}  // namespace belljar::plan
