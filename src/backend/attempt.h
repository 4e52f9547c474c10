// backend/attempt.h: one attempt at a run: plan, launch, supervise. Where the host turns out to lack something there is
// another.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <belljar/error.h>
#include <belljar/policy.h>
#include <belljar/result.h>
#include <belljar/run.h>

#include "launch/launcher.h"
#include "launch/verdict.h"
#include "plan/compiled_plan.h"
#include "sys/host_facts.h"
#include "trace/trace_log.h"

namespace belljar::backend {

struct RunRequest {
  const Policy& policy;
  const std::vector<std::string>& argv;
  const RunOptions& options;
  const Caller& caller;
  trace::TraceDepth depth = trace::TraceDepth::kOff;
  launch::Launcher* launcher = nullptr;  ///< None: by this process itself.
  std::string bwrap = {};                ///< The program that makes the walls; empty: sandbox init.
};

struct Attempt {
  Result result;
  trace::Record record;            ///< Of a traced run.
  std::string private_directory;   ///< Of the forms without a root of their own.
  std::optional<int> exec_failed;  ///< The errno, when there was no such program inside.
  /// Where a launch broke off before the command ran, for LearnFromFailure.
  int failed_errno = 0;
  plan::Op failed_op = plan::Op::kExec;
  enum class Stage : std::uint8_t { kRan, kClone, kSetup } failed_at = Stage::kRan;
};

/// An Error means that the caller's arguments are wrong.
Expected<Attempt> RunOnce(const RunRequest& run, const sys::HostFacts& facts);

/// Runs in a sandbox of the pool. Nothing when none was ready or the command needs another: RunOnce will do it.
class Pool;
std::optional<Expected<Attempt>> RunWarm(Pool& pool, const RunRequest& run, const sys::HostFacts& facts);

/// Finds out whether a failed launch was because the host lacks something that was taken for granted. If so, writes it
/// into `facts` and returns true: another form may do.
bool LearnFromFailure(const Attempt& attempt, sys::HostFacts& facts);

/// RunOnce, and once more where LearnFromFailure says so; `facts` then holds what was learned.
Expected<Attempt> RunWithFallback(const RunRequest& run, sys::HostFacts& facts);

std::string PlanJson(const plan::CompiledPlan& compiled);

}  // namespace belljar::backend
