// prove/outcome.h: what an attack says of itself on its last line: "worked …", "refused 1 …" or "unable …".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace belljar::prove {

struct Outcome {
  enum class Kind : std::uint8_t {
    kSilent,   ///< It ended, or was ended, without a word.
    kWorked,   ///< The attack did what it set out to do.
    kRefused,  ///< Something stood in its way.
    kUnable,   ///< Nothing to attack here.
  };
  Kind kind = Kind::kSilent;
  int error = 0;       ///< errno of a refusal.
  std::string detail;  ///< What was got, or what refused.

  /// "mount of tmpfs: Operation not permitted"
  std::string Text() const;
};

/// The last outcome in the output; guests may print other lines before it.
Outcome ReadOutcome(std::string_view output);

}  // namespace belljar::prove
