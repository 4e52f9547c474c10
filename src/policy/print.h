// policy/print.h: a policy back into text that can be read again.
#pragma once

#include <cstdint>
#include <string>

#include <belljar/policy.h>
#include "base/json_writer.h"

namespace belljar::policy {

enum class Comments : std::uint8_t { kNone, kDocs };

/// All values that hold, min_level included; keys that are unset stay comments. FromToml gives the same policy again.
std::string ToToml(const Policy& policy, Comments comments = Comments::kDocs);

/// The same keys as one JSON object; keys that are unset are left out. FromJson gives the same policy again.
void WriteJson(base::JsonWriter& json, const Policy& policy);

}  // namespace belljar::policy
