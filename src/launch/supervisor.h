// launch/supervisor.h: stays with a sandbox until it is gone: streams, deadlines, limits, refused calls, verdict.
#pragma once

#include <vector>

#include <belljar/policy.h>
#include <belljar/result.h>
#include <belljar/run.h>

#include "launch/live_state.h"
#include "launch/sandbox.h"
#include "launch/verdict.h"
#include "trace/trace_log.h"

namespace belljar::launch {

/// What came of a launch. When set-up failed the caller may want to know the step to try another form.
struct Finished {
  Result result;
  Observed observed;
  trace::Record record;  ///< Of a traced run.
};

struct Supervised {
  const plan::CompiledPlan& plan;
  const Policy& policy;  ///< From which the plan was compiled.
  const RunOptions& options;
  int cancel = -1;  ///< Ends it when it is readable; -1: as the options say.
};

/// Blocks until the sandbox is gone. The plan has to be one for a traced run when `depth` is not kOff.
Finished Supervise(Sandbox& sandbox, const Supervised& what, trace::TraceDepth depth = trace::TraceDepth::kOff);

/// Stays with a live sandbox until it is gone: all but its commands.
void SuperviseLive(Sandbox& sandbox, const plan::CompiledPlan& plan, const Policy& policy, LiveState& live);
/// Blocks until one command of it is over. `connection` is that of its steward.
Finished SuperviseCommand(const Sandbox& sandbox, Connection& connection, const Supervised& what, LiveState& live);

}  // namespace belljar::launch
