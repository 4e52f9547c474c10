// The engine: chooses a form, launches, and falls back once when the host turns out to lack what the form needs.
#include <belljar/engine.h>

#include <cerrno>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "backend/grants.h"
#include "backend/live.h"
#include "backend/native.h"
#include "backend/options.h"
#include "backend/pool.h"
#include "base/json_writer.h"
#include "base/printable.h"
#include "plan/compile.h"
#include "plan/explain.h"
#include "sys/host_facts.h"
#include "sys/process.h"

namespace belljar {

struct Engine::State {
  std::mutex mutex;
  sys::HostFacts facts;  ///< Guarded by mutex: a run that finds a lack writes it down for the next.
  std::unique_ptr<launch::Launcher> launcher;  ///< None for Launching::kSelf. Before the pool, which uses it.
  std::unique_ptr<backend::Pool> pool;

  std::unique_ptr<launch::Launcher> live_launcher;  ///< Guarded by mutex; where there is no other.

  /// Live sandboxes always have one: what a thread of this process makes itself ends with that thread.
  launch::Launcher& LiveLauncher() {
    if (launcher) return *launcher;
    const std::lock_guard lock(mutex);
    if (!live_launcher) live_launcher = std::make_unique<launch::Launcher>();
    return *live_launcher;
  }
  sys::HostFacts Facts() {
    const std::lock_guard lock(mutex);
    return facts;
  }
  void Learn(const sys::HostFacts& learned) {
    const std::lock_guard lock(mutex);
    facts = learned;
  }
};

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Expected<Engine> Engine::Open(const EngineOptions& options) {
  auto state = std::make_unique<State>();
  state->facts = sys::ReadHostFacts();
  if (options.launching == Launching::kLauncher) state->launcher = std::make_unique<launch::Launcher>();
  if (options.warm > 0) state->pool = std::make_unique<backend::Pool>(options.warm, state->launcher.get());
  return Engine(std::move(state));
}

namespace {

Expected<plan::CompiledPlan> CompileForDisplay(const Policy& policy, const sys::HostFacts& facts,
                                               const std::vector<std::string>& argv, const RunOptions& options) {
  if (auto good = backend::CheckPolicy(policy); !good) return std::unexpected(good.error());
  std::optional<Policy> own;
  auto adjusted = backend::ForRun(policy, options, own);
  if (!adjusted) return std::unexpected(adjusted.error());
  auto compiled = plan::Compile({.policy = **adjusted,
                                 .facts = facts,
                                 .caller = options.caller ? *options.caller : Caller::OfThisProcess(),
                                 .argv = argv,
                                 .streams = backend::StreamsOf(options),
                                 .tracing = options.trace == Trace::kOff ? plan::Tracing::kOff : plan::Tracing::kOn,
                                 .channels = options.channels,
                                 .run_id = "RUN"});
  if (!compiled) return std::unexpected(compiled.error().error);
  return std::move(*compiled);
}

}  // namespace

Expected<Result> Engine::Run(const Policy& policy, const std::vector<std::string>& argv, const RunOptions& options) {
  const std::uint64_t began = sys::NowNs();
  if (auto good = backend::CheckPolicy(policy); !good) return std::unexpected(good.error());
  if (auto good = backend::CheckDescriptors(options); !good) return std::unexpected(good.error());
  sys::HostFacts facts = state_->Facts();
  const bool had_namespaces = facts.user_namespaces;
  const bool had_listener = facts.seccomp_listener;
  const bool traced = options.trace == Trace::kRefusals;
  if (options.open_input) {
    return std::unexpected(Error{.step = "run " + (argv.empty() ? "a command" : argv[0]),
                                 .message = "nobody could write to its open input while it is waited for",
                                 .hint = "use LiveSandbox::Start"});
  }
  std::optional<Policy> own_policy;
  auto adjusted = backend::ForRun(policy, options, own_policy);
  if (!adjusted) return std::unexpected(adjusted.error());
  std::optional<Caller> own;
  if (!options.caller) own = Caller::OfThisProcess();
  const backend::NativeRun run{.policy = **adjusted,
                               .argv = argv,
                               .options = options,
                               .caller = options.caller ? *options.caller : *own,
                               .depth = traced ? launch::TraceDepth::kRefusals : launch::TraceDepth::kOff,
                               .launcher = state_->launcher.get()};
  auto warm = state_->pool ? backend::RunWarm(*state_->pool, run, facts) : std::nullopt;
  auto result = warm ? std::move(*warm) : backend::RunWithFallback(run, facts);
  if (facts.user_namespaces != had_namespaces || facts.seccomp_listener != had_listener) state_->Learn(facts);
  if (!result) return std::unexpected(result.error());
  if (traced) backend::AddDenials(*result, run.policy, argv, run.caller);
  result->result.duration_ms = static_cast<double>(sys::NowNs() - began) / 1e6;
  return std::move(result->result);
}

Expected<LiveSandbox> Engine::Open(const Policy& policy, const std::optional<Caller>& caller) {
  if (auto good = backend::CheckPolicy(policy); !good) return std::unexpected(good.error());
  sys::HostFacts facts = state_->Facts();
  auto live = backend::Live::Open(policy, caller ? *caller : Caller::OfThisProcess(), facts, state_->LiveLauncher());
  if (facts.user_namespaces != state_->Facts().user_namespaces) state_->Learn(facts);
  if (!live) return std::unexpected(live.error());
  return LiveSandbox(std::make_unique<LiveSandbox::State>(std::move(*live)));
}

Expected<void> Engine::Prepare(const Policy& policy, std::size_t count) {
  if (auto good = backend::CheckPolicy(policy); !good) return std::unexpected(good.error());
  if (!state_->pool) {
    return std::unexpected(Error{.step = "prepare sandboxes",
                                 .message = "this engine keeps none ready",
                                 .hint = "open it with EngineOptions{.warm = 4}"});
  }
  return state_->pool->Fill(policy, state_->Facts(), count);
}

Expected<std::string> Engine::Explain(const Policy& policy, const std::vector<std::string>& argv,
                                      const RunOptions& options) {
  auto compiled = CompileForDisplay(policy, state_->Facts(), argv, options);
  if (!compiled) return std::unexpected(compiled.error());
  std::string text = fmt::format("level {}, form {}, backend {}\n\n", Name(compiled->level), plan::Name(compiled->form),
                                 compiled->receipt.backend);
  int number = 0;
  for (const plan::StepText& step : plan::Explain(*compiled)) {
    text += fmt::format("{:3}  {:8} {:<64} {}\n", ++number, step.who, base::Printable(step.what), step.why);
  }
  text += "\nguards\n";
  for (const GuardReceipt& guard : compiled->receipt.guards) {
    text += fmt::format("  {:<18} {:<9} {}{}{}\n", guard.guard, Name(guard.state), base::Printable(guard.by),
                        guard.by.empty() || guard.reason.empty() ? "" : ": ", guard.reason);
  }
  if (!compiled->receipt.brought.empty()) text += "\nbrought along, read-only\n";
  for (const Brought& brought : compiled->receipt.brought) {
    text += fmt::format("  {}  ({})\n", base::Printable(brought.path), base::Printable(brought.why));
  }
  if (!compiled->receipt.channels.empty()) text += "\nchannels\n";
  for (const ChannelReceipt& channel : compiled->receipt.channels) {
    text += fmt::format("  {:<3} {:<6} {}\n", channel.number, channel.kind, base::Printable(channel.name));
  }
  return text;
}

Expected<std::string> Engine::ExplainJson(const Policy& policy, const std::vector<std::string>& argv,
                                          const RunOptions& options) {
  auto compiled = CompileForDisplay(policy, state_->Facts(), argv, options);
  if (!compiled) return std::unexpected(compiled.error());
  return backend::PlanJson(*compiled);
}

}  // namespace belljar
