// policy/json_schema.h: the table of keys as JSON Schema (draft 2020-12), for editors and other programs.
#pragma once

#include "base/json_writer.h"

namespace belljar::policy {

/// What the schema can't say (min_level above level, doubled targets) only Policy::Check knows.
void WriteJsonSchema(base::JsonWriter& json);

}  // namespace belljar::policy
