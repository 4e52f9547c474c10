// backend/native.h: Belljar's own backend: plan, launch, supervise.
#pragma once

#include <string>
#include <vector>

#include <belljar/error.h>
#include <belljar/policy.h>
#include <belljar/result.h>
#include <belljar/run.h>

#include "launch/verdict.h"
#include "plan/compiled_plan.h"
#include "sys/host_facts.h"

namespace belljar::backend {

struct NativeRun {
  const Policy& policy;
  const std::vector<std::string>& argv;
  const RunOptions& options;
};

struct NativeOutcome {
  Result result;
  /// Where a launch broke off before the command ran, for LearnFromFailure.
  int failed_errno = 0;
  plan::Op failed_op = plan::Op::kExec;
  enum class Stage : std::uint8_t { kRan, kClone, kSetup } failed_at = Stage::kRan;
};

/// An Error means that the caller's arguments are wrong.
Expected<NativeOutcome> RunNative(const NativeRun& run, const sys::HostFacts& facts);

/// Finds out whether a failed launch was because the host lacks something that was taken for granted. If so, writes it
/// into `facts` and returns true: another form may do.
bool LearnFromFailure(const NativeOutcome& outcome, sys::HostFacts& facts);

std::string PlanJson(const plan::CompiledPlan& compiled);

}  // namespace belljar::backend
