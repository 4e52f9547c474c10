// base/result_json.h: a Result as JSON into any writer; ToJson (belljar/result.h) is this into a string.
#pragma once

#include <belljar/result.h>
#include "base/json_writer.h"

namespace belljar::base {

/// With a writer that drains, a result with large output costs no second copy of it.
void WriteJson(JsonWriter& json, const Result& result);
void WriteJson(JsonWriter& json, const Receipt& receipt);

}  // namespace belljar::base
