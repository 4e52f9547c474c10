// prove/judge.h: what one run inside means: whether it was held, by which guard, and whether that was promised.
#pragma once

#include <string>

#include <belljar/result.h>

#include "prove/catalog.h"
#include "prove/outcome.h"

namespace belljar::prove {

/// How the guest's part ended.
struct Inside {
  enum class Kind : std::uint8_t { kHeld, kWorked, kFailed };
  Kind kind = Kind::kFailed;
  int error = 0;  ///< errno of the refusal, or 0.
  std::string text;
};

/// From its output, verdict and survivors. `output_limit` is for cases that flood it.
Inside ReadInside(const Case& c, const Result& result, int survivors, std::uint64_t output_limit);

/// The guard that held it: from the verdict, the denials and the errno where they tell, else the first of the case's
/// guards that is in force.
std::string HeldBy(const Case& c, const Result& result, int error);

/// True when the receipt claims at least one guard that should hold the case.
bool IsPromised(const Case& c, const Receipt& receipt);

}  // namespace belljar::prove
