// policy/key.h: the one table of policy keys.
//
// Everything that knows keys by name is made from this table: the TOML and JSON binding, Policy::Set, the command-line
// flags, `policy show` and the JSON Schema. A new key is one row here (and a line in profiles/*.toml).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <belljar/policy.h>
#include "policy/units.h"

namespace belljar::policy {

enum class Kind : std::uint8_t {
  kProfile,   ///< The name of a profile.
  kChoice,    ///< One of `choices`; kept as its index.
  kNumber,    ///< In `unit`, between `min` and `max`, or "unlimited".
  kText,      ///< A string.
  kTextList,  ///< A list of strings.
  kMounts,    ///< A list of {source, target, access}.
  kTextMap,   ///< A table of strings.
};

struct Key {
  std::string_view name;  ///< Dotted, e.g. "limits.memory".
  Kind kind;
  std::string_view initial;   ///< The default in its human form; empty: unset, or an empty list.
  std::string_view doc;       ///< One sentence for --help, the schema and `policy show`.
  std::string_view flag;      ///< Empty for files.mounts, which has two (--ro and --rw), and where no verb needs it.
  std::string_view argument;  ///< What --help calls the flag's value.
  std::string_view example;   ///< A value that teaches the form.

  std::span<const std::string_view> choices = {};
  Unit unit = Unit::kCount;
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  /// kChoice and kNumber; nothing when the key is unset.
  std::optional<std::uint64_t> (*get)(const Policy&) = nullptr;
  void (*set)(Policy&, std::uint64_t) = nullptr;
  std::string& (*text)(Policy&) = nullptr;               ///< kText
  std::vector<std::string>& (*list)(Policy&) = nullptr;  ///< kTextList

  std::string_view section() const;  ///< "limits", or empty for a top-level key.
  std::string_view leaf() const;     ///< "memory"
};

std::span<const Key> Keys();
const Key* FindKey(std::string_view name);

/// The value in its human form. Only for kChoice and kNumber that are set.
std::string FormatValue(const Key& key, std::uint64_t value);

inline constexpr std::string_view kUnlimitedWord = "unlimited";

}  // namespace belljar::policy
