#include "backend/live.h"

#include <cerrno>
#include <optional>

#include <fmt/format.h>

#include "backend/native.h"
#include "plan/compile.h"
#include "sys/process.h"

namespace belljar::backend {
namespace {

Expected<void> CheckOptions(const RunOptions& options) {
  const auto lacks = [](const char* what, const char* hint) {
    return std::unexpected(Error{
        .step = "run in a live sandbox", .message = fmt::format("its commands have no {} yet", what), .hint = hint});
  };
  constexpr char kByItself[] = "use Engine::Run, which makes a sandbox for the one command";
  if (options.streams == StreamMode::kTerminal) return lacks("terminal", kByItself);
  if (options.trace != Trace::kOff) return lacks("trace", kByItself);
  if (!options.channels.empty()) return lacks("channels", kByItself);
  return {};
}

Result Over(launch::KillReason reason, const Policy& policy, const Receipt& receipt) {
  launch::Observed observed;
  observed.killed = reason == launch::KillReason::kNone ? launch::KillReason::kLostInit : reason;
  Result result;
  launch::Decide(observed, policy, {}, result);
  result.receipt = receipt;
  return result;
}

Result Failed(const Error& error, const Receipt& receipt) {
  Result result;
  result.verdict = Verdict::kFailed;
  result.message = error.Text();
  result.receipt = receipt;
  return result;
}

}  // namespace

Expected<std::unique_ptr<Live>> Live::Open(const Policy& policy, const Caller& caller, sys::HostFacts& facts,
                                           launch::Launcher& launcher) {
  for (int attempt = 0;; ++attempt) {
    auto plan = plan::Compile({.policy = policy,
                               .facts = facts,
                               .caller = caller,
                               .argv = {},
                               .command = plan::CommandKnown::kMany,
                               .init_of = plan::InitOf::kLauncher,
                               .run_id = sys::MakeRunId()});
    if (!plan) return std::unexpected(plan.error().error);
    auto state = launch::LiveState::Make();
    if (!state) return std::unexpected(state.error());
    std::unique_ptr<Live> live(new Live(policy, facts, std::move(*plan), std::move(*state)));
    auto sandbox = launch::Sandbox::Prepare(live->plan_, {.cgroups = facts.cgroups, .launcher = &launcher});
    if (sandbox) {
      live->sandbox_.emplace(std::move(*sandbox));
      live->keeper_ = std::thread(
          [own = live.get()] { launch::SuperviseLive(*own->sandbox_, own->plan_, own->policy_, own->state_); });
      return live;
    }
    NativeOutcome outcome;
    outcome.failed_errno = sandbox.error().code;
    outcome.failed_at = NativeOutcome::Stage::kClone;
    if (attempt > 0 || !LearnFromFailure(outcome, facts)) return std::unexpected(sandbox.error());
  }
}

Live::~Live() {
  Close();
  if (keeper_.joinable()) keeper_.join();
}

Expected<Result> Live::Run(const std::vector<std::string>& argv, const RunOptions& options) {
  const std::uint64_t began = sys::NowNs();
  if (auto good = CheckOptions(options); !good) return std::unexpected(good.error());
  std::optional<Policy> shorter;
  const Policy& policy = WithDeadline(policy_, options, shorter);
  const Caller caller = options.caller ? *options.caller : Caller::OfThisProcess();
  auto command = plan::CompileCommand({.policy = policy,
                                       .facts = facts_,
                                       .caller = caller,
                                       .argv = argv,
                                       .command = plan::CommandKnown::kMany,
                                       .run_id = {}});
  if (!command) return std::unexpected(command.error().error);
  if (command->empty()) {
    return std::unexpected(Error{.step = "run " + argv[0] + " in a live sandbox",
                                 .message = "its arguments and environment are longer than 64 KiB",
                                 .hint = "pass the data on standard input or in a file"});
  }
  if (const auto reason = state_.reason(); reason != launch::KillReason::kNone)
    return Over(reason, policy_, plan_.receipt);
  const launch::Input input{.text = options.input, .source = options.descriptors.in};
  auto connection = sandbox_->Add(*command, input);
  if (!connection) {
    const bool gone = connection.error().code == EPIPE || connection.error().code == ECONNRESET;
    if (!gone) return Failed(connection.error(), plan_.receipt);
    state_.Abandon(launch::KillReason::kLostInit);
    return Over(state_.reason(), policy_, plan_.receipt);
  }
  Result result = launch::SuperviseCommand(*sandbox_, *connection, {plan_, policy, options}, state_).result;
  result.duration_ms = static_cast<double>(sys::NowNs() - began) / 1e6;
  return result;
}

}  // namespace belljar::backend
