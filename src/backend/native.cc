#include "backend/native.h"

#include <cerrno>

#include "backend/options.h"
#include "backend/pool.h"
#include "base/json_writer.h"
#include "base/result_json.h"
#include "launch/sandbox.h"
#include "launch/supervisor.h"
#include "plan/compile.h"
#include "plan/explain.h"
#include "plan/protect.h"
#include "sys/files.h"
#include "sys/probe_namespaces.h"
#include "sys/process.h"

namespace belljar::backend {
namespace {

NativeOutcome Ended(Verdict verdict, const Error& error, const NativeRun& run, const sys::HostFacts& facts) {
  NativeOutcome outcome;
  outcome.result.verdict = verdict;
  outcome.result.message = error.Text();
  outcome.result.receipt.backend = run.bwrap.empty() ? "native" : "bwrap";
  outcome.result.receipt.host = facts.kernel;
  return outcome;
}

NativeOutcome Supervised(launch::Sandbox& sandbox, const plan::CompiledPlan& compiled, const NativeRun& run) {
  launch::Outcome seen = launch::Supervise(sandbox, {compiled, run.policy, run.options}, run.depth);
  NativeOutcome outcome{
      .result = std::move(seen.result), .accesses = std::move(seen.accesses), .left_out = seen.left_out};
  outcome.private_directory = compiled.private_directory;
  const std::int32_t uncovered = seen.observed.uncovered;
  outcome.result.appeared = plan::FindAppeared(run.policy, compiled, plan::PathOfStep(compiled.plan(), uncovered));
  if (seen.observed.exec_failed) outcome.exec_failed = seen.observed.exec_failed->error;
  if (seen.observed.setup_failed) {
    const plan::Report& report = *seen.observed.setup_failed;
    outcome.failed_at = NativeOutcome::Stage::kSetup;
    outcome.failed_errno = report.error;
    const auto index = static_cast<std::uint32_t>(report.step);
    if (index < compiled.plan().step_count) outcome.failed_op = plan::Steps(compiled.plan())[index].op;
  }
  return outcome;
}

}  // namespace

Expected<NativeOutcome> RunNative(const NativeRun& run, const sys::HostFacts& facts) {
  const bool traced = run.depth != launch::TraceDepth::kOff;
  const auto compiled =
      plan::Compile({.policy = run.policy,
                     .facts = facts,
                     .caller = run.caller,
                     .argv = run.argv,
                     .streams = StreamsOf(run.options),
                     .tracing = traced ? plan::Tracing::kOn : plan::Tracing::kOff,
                     .init_of = run.launcher != nullptr ? plan::InitOf::kLauncher : plan::InitOf::kCaller,
                     .channels = run.options.channels,
                     .run_id = sys::MakeRunId(),
                     .bwrap = run.bwrap});
  if (!compiled) {
    if (compiled.error().fault == plan::Fault::kCaller) return std::unexpected(compiled.error().error);
    return Ended(Verdict::kRefused, compiled.error().error, run, facts);
  }
  auto sandbox =
      launch::Sandbox::Start(*compiled, {.cgroups = facts.cgroups, .launcher = run.launcher}, Attach(run.options));
  if (!sandbox) {
    NativeOutcome outcome = Ended(Verdict::kFailed, sandbox.error(), run, facts);
    outcome.failed_errno = sandbox.error().code;
    outcome.failed_at = NativeOutcome::Stage::kClone;
    return outcome;
  }
  return Supervised(*sandbox, *compiled, run);
}

std::optional<Expected<NativeOutcome>> RunWarm(Pool& pool, const NativeRun& run, const sys::HostFacts& facts) {
  const bool plain = run.options.streams != StreamMode::kTerminal && run.depth == launch::TraceDepth::kOff &&
                     run.options.channels.empty();
  if (!plain || run.policy.level < Level::kKernel) return std::nullopt;
  const auto command = plan::CompileCommand(
      {.policy = run.policy, .facts = facts, .caller = run.caller, .argv = run.argv, .run_id = {}});
  // A mistake is told by the ordinary way, in its own words.
  if (!command || command->block.empty()) return std::nullopt;
  std::unique_ptr<Prepared> prepared = pool.Take(run.policy, facts);
  if (!prepared) return std::nullopt;
  std::optional<launch::Sandbox>& sandbox = prepared->sandbox;
  // It may have died while it waited, as when the host ran out of memory.
  if (!sandbox || !sandbox->Begin(command->block, Attach(run.options))) return std::nullopt;
  NativeOutcome outcome = Supervised(*sandbox, prepared->plan, run);
  pool.Retire(std::move(prepared));
  return outcome;
}

bool LearnFromFailure(const NativeOutcome& outcome, sys::HostFacts& facts) {
  if (outcome.failed_at == NativeOutcome::Stage::kRan) return false;
  if (outcome.failed_op == plan::Op::kSeccomp && outcome.failed_errno == EBUSY && facts.seccomp_listener) {
    facts.seccomp_listener = false;
    return true;
  }
  const bool denied = outcome.failed_errno == EPERM || outcome.failed_errno == EACCES ||
                      outcome.failed_errno == ENOSPC || outcome.failed_errno == EUSERS ||
                      outcome.failed_errno == EINVAL;
  if (!denied || !facts.user_namespaces) return false;
  const auto usable = sys::ProbeNamespaceForm();
  if (usable) return false;
  facts.user_namespaces = false;
  facts.user_namespaces_lack = usable.error().message;
  if (!usable.error().hint.empty()) facts.user_namespaces_lack += "; " + usable.error().hint;
  return true;
}

Expected<NativeOutcome> RunWithFallback(const NativeRun& run, sys::HostFacts& facts) {
  auto outcome = RunNative(run, facts);
  // At most two lacks can be learned: user namespaces and the listener.
  for (int attempt = 0; attempt < 2 && outcome && LearnFromFailure(*outcome, facts); ++attempt) {
    outcome = RunNative(run, facts);
  }
  return outcome;
}

std::string PlanJson(const plan::CompiledPlan& compiled) {
  std::string text;
  base::JsonWriter json(text);
  json.BeginObject().Field("level", Name(compiled.level)).Field("form", plan::Name(compiled.form));
  json.Key("steps").BeginArray();
  for (const plan::StepText& step : plan::Explain(compiled)) {
    json.BeginObject().Field("who", step.who).Field("what", step.what).Field("why", step.why).EndObject();
  }
  json.EndArray().Key("receipt");
  base::WriteJson(json, compiled.receipt);
  json.EndObject();
  return text;
}

}  // namespace belljar::backend
