// The engine: a backend, and what is the same with each.
#include <belljar/engine.h>

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "backend/backend.h"
#include "backend/options.h"
#include "base/printable.h"
#include "plan/explain.h"
#include "sys/process.h"
#include "trace/grants.h"

namespace belljar {

struct Engine::State {
  std::unique_ptr<backend::Backend> backend;
};

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Expected<Engine> Engine::Open(const EngineOptions& options) {
  auto backend = backend::MakeBackend(options);
  if (!backend) return std::unexpected(backend.error());
  auto state = std::make_unique<State>();
  state->backend = std::move(*backend);
  return Engine(std::move(state));
}

Expected<Result> Engine::Run(const Policy& policy, const std::vector<std::string>& argv, const RunOptions& options) {
  const std::uint64_t began = sys::NowNs();
  if (auto good = backend::CheckPolicy(policy); !good) return std::unexpected(good.error());
  if (auto good = backend::CheckDescriptors(options); !good) return std::unexpected(good.error());
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
  const backend::RunRequest run{.policy = **adjusted,
                                .argv = argv,
                                .options = options,
                                .caller = options.caller ? *options.caller : *own,
                                .depth = traced ? trace::TraceDepth::kRefusals : trace::TraceDepth::kOff};
  auto result = state_->backend->Run(run);
  if (!result) return std::unexpected(result.error());
  if (traced) {
    trace::AddDenials(std::move(result->record), result->exec_failed, run.policy, argv, run.caller, result->result);
  }
  result->result.duration_ms = static_cast<double>(sys::NowNs() - began) / 1e6;
  return std::move(result->result);
}

Expected<LiveSandbox> Engine::Open(const Policy& policy, const std::optional<Caller>& caller) {
  if (auto good = backend::CheckPolicy(policy); !good) return std::unexpected(good.error());
  auto live = state_->backend->Create(policy, caller ? *caller : Caller::OfThisProcess());
  if (!live) return std::unexpected(live.error());
  return LiveSandbox(std::make_unique<LiveSandbox::State>(std::move(*live)));
}

Expected<Receipt> Engine::Assess(const Policy& policy, const std::optional<Caller>& caller) {
  return state_->backend->Assess(policy, caller ? *caller : Caller::OfThisProcess());
}

Expected<void> Engine::Prepare(const Policy& policy, std::size_t count) {
  if (auto good = backend::CheckPolicy(policy); !good) return std::unexpected(good.error());
  return state_->backend->Prepare(policy, count);
}

Expected<std::string> Engine::Explain(const Policy& policy, const std::vector<std::string>& argv,
                                      const RunOptions& options) {
  auto compiled = state_->backend->Plan(policy, argv, options);
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
  auto compiled = state_->backend->Plan(policy, argv, options);
  if (!compiled) return std::unexpected(compiled.error());
  return backend::PlanJson(*compiled);
}

}  // namespace belljar
