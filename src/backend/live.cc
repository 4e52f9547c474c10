#include "backend/live.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "backend/attempt.h"
#include "backend/options.h"
#include "backend/tighten.h"
#include "plan/compile.h"
#include "plan/explain.h"
#include "plan/protect.h"
#include "sys/process.h"

namespace belljar::backend {
namespace {

constexpr std::size_t kMostRemembered = 16'384;

Result Over(const launch::LiveState& state, const Policy& policy, const plan::CompiledPlan& plan) {
  launch::Observed observed;
  const auto reason = state.reason();
  observed.killed = reason == launch::KillReason::kNone ? launch::KillReason::kLostInit : reason;
  Result result;
  launch::Decide(observed, policy, plan::PathOfStep(plan.plan(), state.uncovered()), result);
  result.receipt = plan.receipt;
  return result;
}

// Nobody is at the other end.
bool IsGone(const Error& error) { return error.code == EPIPE || error.code == ECONNRESET; }

Result Failed(const Error& error, const Receipt& receipt) {
  Result result;
  result.verdict = Verdict::kFailed;
  result.message = error.Text();
  result.receipt = receipt;
  return result;
}

}  // namespace

Expected<std::shared_ptr<Live>> Live::Open(const Policy& policy, const Caller& caller, sys::HostFacts& facts,
                                           launch::Launcher& launcher, const std::string& bwrap) {
  for (int tried = 0;; ++tried) {
    auto plan = plan::Compile({.policy = policy,
                               .facts = facts,
                               .caller = caller,
                               .argv = {},
                               .command = plan::CommandKnown::kMany,
                               .init_of = plan::InitOf::kLauncher,
                               .run_id = sys::MakeRunId(),
                               .bwrap = bwrap});
    if (!plan) return std::unexpected(plan.error().error);
    auto state = launch::LiveState::Make(policy.limits);
    if (!state) return std::unexpected(state.error());
    std::shared_ptr<Live> live(new Live(policy, facts, std::move(*plan), std::move(*state)));
    auto sandbox = launch::Sandbox::Prepare(live->plan_, {.cgroups = facts.cgroups, .launcher = &launcher});
    if (sandbox) {
      live->sandbox_.emplace(std::move(*sandbox));
      live->keeper_ = std::thread([own = live.get(), policy = live->policy()] {
        launch::SuperviseLive(*own->sandbox_, own->plan_, *policy, *own->state_);
      });
      return live;
    }
    Attempt attempt;
    attempt.failed_errno = sandbox.error().code;
    attempt.failed_at = Attempt::Stage::kClone;
    if (tried > 0 || !bwrap.empty() || !LearnFromFailure(attempt, facts)) return std::unexpected(sandbox.error());
  }
}

Live::~Live() {
  Close();
  if (keeper_.joinable()) keeper_.join();
}

Expected<Live::Begun> Live::Begin(const std::vector<std::string>& argv, const RunOptions& options) {
  Begun begun{.began = sys::NowNs(), .policy = policy()};
  if (options.trace != Trace::kOff) {
    return std::unexpected(Error{.step = "run in a live sandbox",
                                 .message = "its commands can have no trace yet",
                                 .hint = "use Engine::Run, which makes a sandbox for the one command"});
  }
  if (auto good = CheckDescriptors(options); !good) return std::unexpected(good.error());
  auto policy = ForRun(*begun.policy, options, begun.own_policy);
  if (!policy) return std::unexpected(policy.error());
  const Caller caller = options.caller ? *options.caller : Caller::OfThisProcess();
  auto command = plan::CompileCommand({.policy = **policy,
                                       .facts = facts_,
                                       .caller = caller,
                                       .argv = argv,
                                       .streams = StreamsOf(options),
                                       .rows = options.terminal_size.rows,
                                       .columns = options.terminal_size.columns,
                                       .command = plan::CommandKnown::kMany,
                                       .channels = options.channels,
                                       .run_id = {}});
  if (!command) return std::unexpected(command.error().error);
  if (command->block.empty()) {
    return std::unexpected(Error{.step = "run " + argv[0] + " in a live sandbox",
                                 .message = "its arguments and environment are longer than 64 KiB",
                                 .hint = "pass the data on standard input or in a file"});
  }
  begun.channels = std::move(command->channels);
  if (state_->reason() != launch::KillReason::kNone) {
    begun.over = Over(*state_, *begun.policy, plan_);
    return begun;
  }
  begun.running = std::make_unique<launch::LiveState::Running>(*state_);
  auto connection = HandOver(command->block, Attach(options));
  if (connection) {
    begun.connection = std::move(*connection);
    return begun;
  }
  const bool gone = IsGone(connection.error());
  if (gone) {
    state_->Abandon(launch::KillReason::kNone);
    state_->AwaitEnd();
  }
  begun.over = gone ? Over(*state_, *begun.policy, plan_) : Failed(connection.error(), plan_.receipt);
  return begun;
}

Expected<launch::Connection> Live::HandOver(std::span<const std::uint64_t> command, const launch::Attached& given) {
  if (given.terminal) return sandbox_->BeginAtTerminal(command, given);
  auto ready = state_->TakeReady();
  auto steward = ready ? Expected<launch::Connection>(std::move(*ready)) : sandbox_->AddSteward();
  if (!steward) return steward;
  const auto begun = sandbox_->Begin(*steward, command, given);
  // A steward that is gone has said why, which is for the supervisor to read.
  if (!begun && !IsGone(begun.error())) return std::unexpected(begun.error());
  // So that the next command finds one, which becomes ready beside this one's start. That command asks again where
  // this fails, and is told why.
  if (!state_->has_ready()) {
    if (auto next = sandbox_->AddSteward()) state_->KeepReady(std::move(*next));
  }
  return steward;
}

std::vector<std::string> Live::Appeared() {
  if (state_->reason() != launch::KillReason::kNone) state_->AwaitEnd();
  const std::lock_guard lock(appeared_mutex_);
  std::vector<std::string> fresh;
  std::set<std::string> there;
  const auto now = policy();
  for (std::string& path : plan::FindAppeared(*now, plan_, plan::PathOfStep(plan_.plan(), state_->uncovered()))) {
    if (!appeared_.contains(path)) fresh.push_back(path);
    if (there.size() < kMostRemembered) there.insert(std::move(path));
  }
  appeared_ = std::move(there);
  return fresh;
}

Result Live::Finish(Begun& begun, const RunOptions& options, int cancel) {
  if (begun.over) return std::move(*begun.over);
  const Policy& policy = begun.own_policy ? *begun.own_policy : *begun.policy;
  const launch::Supervised what{plan_, policy, options, cancel};
  Result result = launch::SuperviseCommand(*sandbox_, begun.connection, what, *state_).result;
  begun.running.reset();
  result.receipt.channels = std::move(begun.channels);
  plan::AddCommandsLimits(policy.limits, result.receipt);
  result.appeared = Appeared();
  result.duration_ms = static_cast<double>(sys::NowNs() - begun.began) / 1e6;
  return result;
}

Expected<void> Live::Tighten(const Policy& wanted) {
  if (auto good = CheckPolicy(wanted); !good) return std::unexpected(good.error());
  const std::lock_guard one_at_a_time(tightening_);
  const auto now = policy();
  if (auto tighter = CheckTighter(*now, wanted); !tighter) return tighter;
  const Limits& limits = wanted.limits;
  const bool less_cpus = limits.cpus_milli < now->limits.cpus_milli;
  if (less_cpus && !sandbox_->cgroup.valid()) {
    return std::unexpected(Error{.step = "tighten limits.cpus",
                                 .message = "no cgroup counts the CPU time of this sandbox",
                                 .hint = "open another sandbox, with fewer CPUs from the start"});
  }
  if (sandbox_->cgroup.valid()) {
    sys::CgroupLimits lower = plan_.cgroup_limits;
    lower.memory = limits.memory;
    lower.processes = plan::TasksFor(limits, plan_.own_tasks);
    lower.cpus_milli = limits.cpus_milli;
    const auto lowered = sandbox_->cgroup.Lower(lower);
    if (!lowered) return std::unexpected(lowered.error());
    if (*lowered == sys::Cgroup::Lowered::kMemoryInUse) state_->Abandon(launch::KillReason::kMemory);
    if (*lowered == sys::Cgroup::Lowered::kProcessesInUse) state_->Abandon(launch::KillReason::kProcesses);
  }
  state_->limits().Lower(limits);
  const std::lock_guard lock(policy_mutex_);
  policy_ = std::make_shared<const Policy>(wanted);
  return {};
}

}  // namespace belljar::backend

namespace belljar {

LiveSandbox::LiveSandbox(std::unique_ptr<State> state) : state_(std::move(state)) {}
LiveSandbox::LiveSandbox(LiveSandbox&&) noexcept = default;
LiveSandbox& LiveSandbox::operator=(LiveSandbox&&) noexcept = default;
LiveSandbox::~LiveSandbox() = default;

Expected<Result> LiveSandbox::Run(const std::vector<std::string>& argv, const RunOptions& options) {
  if (options.open_input) {
    return std::unexpected(Error{.step = "run " + (argv.empty() ? "a command" : argv[0]),
                                 .message = "nobody could write to its open input while it is waited for",
                                 .hint = "use Start"});
  }
  auto begun = state_->live->Begin(argv, options);
  if (!begun) return std::unexpected(begun.error());
  return state_->live->Finish(*begun, options, -1);
}

Expected<void> LiveSandbox::Tighten(const Policy& policy) { return state_->live->Tighten(policy); }

void LiveSandbox::Close() { state_->live->Close(); }

std::vector<std::string> LiveSandbox::Appeared() { return state_->live->Appeared(); }

}  // namespace belljar
