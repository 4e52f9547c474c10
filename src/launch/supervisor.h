// launch/supervisor.h: stays with a sandbox until it is gone: streams, deadlines, limits, refused calls, verdict.
#pragma once

#include <vector>

#include <belljar/policy.h>
#include <belljar/result.h>
#include <belljar/run.h>

#include "launch/sandbox.h"
#include "launch/trace_log.h"
#include "launch/verdict.h"

namespace belljar::launch {

/// What came of a launch. When set-up failed the caller may want to know the step to try another form.
struct Outcome {
  Result result;
  Observed observed;
  std::vector<Access> accesses;  ///< Of a traced run.
  std::uint64_t left_out = 0;    ///< Accesses that found no room.
};

/// Blocks until the sandbox is gone. `policy` is the one the plan was compiled from.
/// The plan has to be one for a traced run when `depth` is not kOff.
Outcome Supervise(Sandbox& sandbox, const plan::CompiledPlan& plan, const Policy& policy, const RunOptions& options,
                  TraceDepth depth = TraceDepth::kOff);

}  // namespace belljar::launch
