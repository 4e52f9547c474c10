// launch/supervisor.h: stays with a sandbox until it is gone: streams, deadlines, limits, refused calls, verdict.
#pragma once

#include <belljar/policy.h>
#include <belljar/result.h>
#include <belljar/run.h>

#include "launch/sandbox.h"
#include "launch/verdict.h"

namespace belljar::launch {

/// What came of a launch. When set-up failed the caller may want to know the step to try another form.
struct Outcome {
  Result result;
  Observed observed;
};

/// Blocks until the sandbox is gone. `policy` is the one the plan was compiled from.
Outcome Supervise(Sandbox& sandbox, const plan::CompiledPlan& plan, const Policy& policy, const RunOptions& options);

}  // namespace belljar::launch
