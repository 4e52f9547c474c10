// belljar/error.h: how every Belljar call says that it could not do its work.
//
//   belljar::Expected<belljar::Engine> engine = belljar::Engine::Open();
//   if (!engine) std::cerr << engine.error().Text() << '\n';
//
// An Error is about Belljar or its caller: a bad policy, a missing file, a kernel that refused a step. What a guest
// does is never an Error; it is a Result with a verdict (see result.h).
//
// Error is a plain value: copy it, move it, keep it; it owns all that it holds.
#pragma once

#include <expected>
#include <string>

namespace belljar {

struct [[nodiscard]] Error {
  std::string step;     ///< What was being done, e.g. "mount /proc" or "policy.toml:3: limits.memory".
  std::string message;  ///< Why it failed, in words.
  std::string hint;     ///< What the user can do now; may be empty.
  int code = 0;         ///< The errno of the failed call, or 0.

  /// One line: "step: message (errno text); hint".
  std::string Text() const;
};

template <typename T>
using Expected = std::expected<T, Error>;

}  // namespace belljar
