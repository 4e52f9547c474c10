// plan/without.h: leaves one guard out of every plan, to see what the others still hold. Test builds only.
//
//   plan::LeaveOut("seccomp");          // once, before the first run
//
// Compiled only with BELLJAR_TEST_SEAMS, which no released program is built with; tests/containment/test_prove.py
// checks that. The receipt is left as it is: it claims the guard, and a case that the guard alone held shows as
// escaped.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <belljar/error.h>

#include "plan/compiled_plan.h"

namespace belljar::plan {

struct RemovableGuard {
  std::string_view name;
  std::string_view what;  ///< What is left out, in words.
};

/// Those of the receipt, and finer ones where a guard has several parts.
std::span<const RemovableGuard> RemovableGuards();

/// All plans compiled from now on lack this guard; empty: none. Not for use beside running compiles.
Expected<void> LeaveOut(std::string_view guard);

/// Called at the end of Compile.
void ApplyLeftOut(CompiledPlan& plan);

}  // namespace belljar::plan
