// backend/tighten.h: which policies are tighter than another one.
#pragma once

#include <belljar/error.h>
#include <belljar/policy.h>

namespace belljar::backend {

/// Whether a live sandbox that has `now` can get `wanted`: nothing but limits differs, and they are lower, and of the
/// kind that can be lowered. The error names the key.
Expected<void> CheckTighter(const Policy& now, const Policy& wanted);

}  // namespace belljar::backend
