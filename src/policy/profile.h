// policy/profile.h: the named profiles, which are the files of profiles/ compiled into the library.
#pragma once

#include <span>
#include <string_view>

#include <belljar/policy.h>

namespace belljar::policy {

struct NamedProfile {
  std::string_view name;
  std::string_view text;  ///< The TOML file, comments included.

  /// What the profile is for: the first line of the file.
  std::string_view summary() const;
};

std::span<const NamedProfile> Profiles();
const NamedProfile* FindProfile(std::string_view name);

/// The profile as a policy. "default" costs nothing: it is what an empty Policy holds.
Expected<Policy> LoadProfile(std::string_view name);

}  // namespace belljar::policy
