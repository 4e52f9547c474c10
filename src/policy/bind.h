// policy/bind.h: puts values into a policy by key, with errors that say where.
#pragma once

#include <optional>
#include <string_view>

#include <belljar/policy.h>
#include "policy/document.h"
#include "policy/key.h"

namespace belljar::policy {

/// Applies a document. It starts from `base`, or from the profile that the document names, or from the default. With a
/// `base` the document's own `profile` key is checked but not followed: who gives a base has chosen already.
Expected<Policy> Bind(const Node& document, std::string_view name, const std::optional<Policy>& base = std::nullopt);

/// Sets one key from its human form, as Policy::Set and the flags do. `step` is what an error calls the place.
Expected<void> SetKey(Policy& policy, const Key& key, std::string_view value, std::string_view step);

/// The error for a key that does not exist.
Error UnknownKey(std::string_view key, std::string step);

/// Reads a policy file as Policy::FromFile does, over `base` when there is one.
Expected<Policy> ReadPolicyFile(const std::string& path, const std::optional<Policy>& base = std::nullopt);

}  // namespace belljar::policy
