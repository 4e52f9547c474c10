// policy/units.h: the human forms of numbers ("512M", "1.5s", "0.5") and back.
//
// Nothing is rounded silently into another meaning: what does not fit, is negative or has an unknown unit is an error,
// and the error says how to write it. Format and Parse are inverse for all values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <belljar/error.h>

namespace belljar::policy {

enum class Unit : std::uint8_t {
  kBytes,     ///< "64K", "1.5G", "4096"; binary multiples
  kDuration,  ///< nanoseconds: "300ms", "1.5s", "2m", "1h"; a plain number is seconds
  kCpus,      ///< thousandths: "2", "0.5"
  kCount,     ///< "64"
};

/// Errors have an empty step: the caller knows where the text stood.
Expected<std::uint64_t> ParseNumber(Unit unit, std::string_view text);
std::string FormatNumber(Unit unit, std::uint64_t value);

/// User input for an error message: in quotes, shortened, without control characters.
std::string Quoted(std::string_view text);

}  // namespace belljar::policy
