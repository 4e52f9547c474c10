// backend/native.h: Belljar's own backend: plan, launch, supervise.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <belljar/error.h>
#include <belljar/policy.h>
#include <belljar/result.h>
#include <belljar/run.h>

#include "launch/launcher.h"
#include "launch/trace_log.h"
#include "launch/verdict.h"
#include "plan/compiled_plan.h"
#include "sys/host_facts.h"

namespace belljar::backend {

struct NativeRun {
  const Policy& policy;
  const std::vector<std::string>& argv;
  const RunOptions& options;
  const Caller& caller;
  launch::TraceDepth depth = launch::TraceDepth::kOff;
  launch::Launcher* launcher = nullptr;  ///< None: by this process itself.
  std::string bwrap = {};                ///< The program that makes the walls; empty: sandbox init.
};

struct NativeOutcome {
  Result result;
  std::vector<launch::Access> accesses;  ///< Of a traced run.
  std::uint64_t left_out = 0;
  std::string private_directory;   ///< Of the forms without a root of their own.
  std::optional<int> exec_failed;  ///< The errno, when there was no such program inside.
  /// Where a launch broke off before the command ran, for LearnFromFailure.
  int failed_errno = 0;
  plan::Op failed_op = plan::Op::kExec;
  enum class Stage : std::uint8_t { kRan, kClone, kSetup } failed_at = Stage::kRan;
};

/// An Error means that the caller's arguments are wrong.
Expected<NativeOutcome> RunNative(const NativeRun& run, const sys::HostFacts& facts);

/// Runs in a sandbox of the pool. Nothing when none was ready or the command needs another: RunNative will do it.
class Pool;
std::optional<Expected<NativeOutcome>> RunWarm(Pool& pool, const NativeRun& run, const sys::HostFacts& facts);

/// Finds out whether a failed launch was because the host lacks something that was taken for granted. If so, writes it
/// into `facts` and returns true: another form may do.
bool LearnFromFailure(const NativeOutcome& outcome, sys::HostFacts& facts);

/// RunNative, and once more where LearnFromFailure says so; `facts` then holds what was learned.
Expected<NativeOutcome> RunWithFallback(const NativeRun& run, sys::HostFacts& facts);

std::string PlanJson(const plan::CompiledPlan& compiled);

}  // namespace belljar::backend
