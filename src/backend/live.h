// backend/live.h: the native backend's live sandboxes.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <belljar/caller.h>
#include <belljar/error.h>
#include <belljar/live_sandbox.h>
#include <belljar/policy.h>
#include <belljar/result.h>
#include <belljar/run.h>

#include "launch/launcher.h"
#include "launch/live_state.h"
#include "launch/sandbox.h"
#include "launch/supervisor.h"
#include "plan/compiled_plan.h"
#include "sys/host_facts.h"

namespace belljar::backend {

class Live {
 public:
  /// What it fails by may be a lack that can be learned (LearnFromFailure): `facts` then holds it.
  static Expected<std::shared_ptr<Live>> Open(const Policy& policy, const Caller& caller, sys::HostFacts& facts,
                                              launch::Launcher& launcher, const std::string& bwrap = {});
  Live(const Live&) = delete;
  Live& operator=(const Live&) = delete;
  ~Live();

  /// A command that was handed over, and the sandbox's answer where that has ended already.
  struct Begun {
    std::uint64_t began = 0;
    std::shared_ptr<const Policy> policy = {};  ///< The sandbox's, as it was then.
    std::optional<Policy> own_policy = {};
    std::vector<ChannelReceipt> channels = {};
    std::unique_ptr<launch::LiveState::Running> running = {};
    launch::Connection connection = {};
    std::optional<Result> over = {};
  };
  /// `options` have to outlive it.
  Expected<Begun> Begin(const std::vector<std::string>& argv, const RunOptions& options);
  /// Blocks until it is over. `cancel` ends it when it is readable; -1: as the options say.
  Result Finish(Begun& begun, const RunOptions& options, int cancel);
  void Close() { state_->Abandon(launch::KillReason::kCancelled); }
  Expected<void> Tighten(const Policy& policy);
  /// Each is told once, as far as that can be remembered, and again when it was gone meanwhile.
  std::vector<std::string> Appeared();

 private:
  Expected<launch::Connection> HandOver(std::span<const std::uint64_t> command, const launch::Attached& given);
  Live(const Policy& policy, const sys::HostFacts& facts, plan::CompiledPlan plan,
       std::unique_ptr<launch::LiveState> state)
      : policy_(std::make_shared<const Policy>(policy)),
        facts_(facts),
        plan_(std::move(plan)),
        state_(std::move(state)) {}

  std::shared_ptr<const Policy> policy() const {
    const std::lock_guard lock(policy_mutex_);
    return policy_;
  }

  mutable std::mutex policy_mutex_;
  std::mutex tightening_;
  std::shared_ptr<const Policy> policy_;  ///< Guarded by policy_mutex_.
  sys::HostFacts facts_;
  plan::CompiledPlan plan_;
  std::mutex appeared_mutex_;
  std::set<std::string> appeared_;  ///< Guarded by appeared_mutex_: what was told and is there.
  std::unique_ptr<launch::LiveState> state_;
  std::optional<launch::Sandbox> sandbox_;
  std::thread keeper_;
};

}  // namespace belljar::backend

namespace belljar {

struct LiveSandbox::State {
  explicit State(std::shared_ptr<backend::Live> made) : live(std::move(made)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { live->Close(); }
  std::shared_ptr<backend::Live> live;  ///< Also of each command that was started.
};

}  // namespace belljar
