// policy/protect.h: names in a writable mount that stay read-only, since somebody else would execute what is in them.
#pragma once

#include <string>
#include <vector>

#include <belljar/policy.h>

namespace belljar::policy {

/// The word in files.protect that stands for profiles/protect.list.
inline constexpr char kProtectDefault[] = "default";

/// files.protect with that word replaced: names as seen from a mount, whose parts may hold * and ?.
std::vector<std::string> ProtectedNames(const Policy& policy);

/// Takes one name from files.protect, also from its default; "all" takes all. False when it is not on the list.
bool Unprotect(Policy& policy, std::string_view name);

}  // namespace belljar::policy
