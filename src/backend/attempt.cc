#include "backend/attempt.h"

#include <cerrno>

#include "backend/options.h"
#include "backend/pool.h"
#include "base/json_writer.h"
#include "base/result_json.h"
#include "doctor/probe_namespaces.h"
#include "launch/sandbox.h"
#include "launch/supervisor.h"
#include "plan/compile.h"
#include "plan/explain.h"
#include "plan/protect.h"
#include "sys/files.h"
#include "sys/process.h"

namespace belljar::backend {
namespace {

Attempt Ended(Verdict verdict, const Error& error, const RunRequest& run, const sys::HostFacts& facts) {
  Attempt attempt;
  attempt.result.verdict = verdict;
  attempt.result.message = error.Text();
  attempt.result.receipt.backend = run.bwrap.empty() ? "native" : "bwrap";
  attempt.result.receipt.host = facts.kernel;
  return attempt;
}

Attempt Supervised(launch::Sandbox& sandbox, const plan::CompiledPlan& compiled, const RunRequest& run) {
  launch::Finished seen = launch::Supervise(sandbox, {compiled, run.policy, run.options}, run.depth);
  Attempt attempt{.result = std::move(seen.result), .record = std::move(seen.record)};
  attempt.private_directory = compiled.private_directory;
  const std::int32_t uncovered = seen.observed.uncovered;
  attempt.result.appeared = plan::FindAppeared(run.policy, compiled, plan::PathOfStep(compiled.plan(), uncovered));
  if (seen.observed.exec_failed) attempt.exec_failed = seen.observed.exec_failed->error;
  if (seen.observed.setup_failed) {
    const plan::Report& report = *seen.observed.setup_failed;
    attempt.failed_at = Attempt::Stage::kSetup;
    attempt.failed_errno = report.error;
    const auto index = static_cast<std::uint32_t>(report.step);
    if (index < compiled.plan().step_count) attempt.failed_op = plan::Steps(compiled.plan())[index].op;
  }
  return attempt;
}

}  // namespace

Expected<Attempt> RunOnce(const RunRequest& run, const sys::HostFacts& facts) {
  const bool traced = run.depth != trace::TraceDepth::kOff;
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
    Attempt attempt = Ended(Verdict::kFailed, sandbox.error(), run, facts);
    attempt.failed_errno = sandbox.error().code;
    attempt.failed_at = Attempt::Stage::kClone;
    return attempt;
  }
  return Supervised(*sandbox, *compiled, run);
}

std::optional<Expected<Attempt>> RunWarm(Pool& pool, const RunRequest& run, const sys::HostFacts& facts) {
  const bool plain = run.options.streams != StreamMode::kTerminal && run.depth == trace::TraceDepth::kOff &&
                     run.options.channels.empty();
  if (!plain || run.policy.level < Level::kKernel) return std::nullopt;
  const auto command = plan::CompileCommand(
      {.policy = run.policy, .facts = facts, .caller = run.caller, .argv = run.argv, .run_id = {}});
  // A mistake is told by the ordinary way, in its own words.
  if (!command || command->block.empty()) return std::nullopt;
  std::unique_ptr<Prepared> prepared = pool.Take(run.policy, facts, run.caller.Variable("HOME").value_or(""));
  if (!prepared) return std::nullopt;
  std::optional<launch::Sandbox>& sandbox = prepared->sandbox;
  // It may have died while it waited, as when the host ran out of memory.
  if (!sandbox || !sandbox->Begin(command->block, Attach(run.options))) return std::nullopt;
  Attempt attempt = Supervised(*sandbox, prepared->plan, run);
  pool.Retire(std::move(prepared));
  return attempt;
}

bool LearnFromFailure(const Attempt& attempt, sys::HostFacts& facts) {
  if (attempt.failed_at == Attempt::Stage::kRan) return false;
  if (attempt.failed_op == plan::Op::kSeccomp && attempt.failed_errno == EBUSY && facts.seccomp_listener) {
    facts.seccomp_listener = false;
    return true;
  }
  const bool denied = attempt.failed_errno == EPERM || attempt.failed_errno == EACCES ||
                      attempt.failed_errno == ENOSPC || attempt.failed_errno == EUSERS ||
                      attempt.failed_errno == EINVAL;
  if (!denied || !facts.user_namespaces) return false;
  const auto usable = doctor::ProbeNamespaceForm();
  if (usable) return false;
  facts.user_namespaces = false;
  facts.user_namespaces_lack = usable.error().message;
  if (!usable.error().hint.empty()) facts.user_namespaces_lack += "; " + usable.error().hint;
  return true;
}

Expected<Attempt> RunWithFallback(const RunRequest& run, sys::HostFacts& facts) {
  auto attempt = RunOnce(run, facts);
  // At most two lacks can be learned: user namespaces and the listener.
  for (int more = 2; more > 0 && attempt && LearnFromFailure(*attempt, facts); --more) {
    attempt = RunOnce(run, facts);
  }
  return attempt;
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
