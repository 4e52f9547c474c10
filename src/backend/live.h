// backend/live.h: the native backend's live sandboxes.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <belljar/caller.h>
#include <belljar/error.h>
#include <belljar/policy.h>
#include <belljar/result.h>
#include <belljar/run.h>

#include "launch/launcher.h"
#include "launch/sandbox.h"
#include "launch/supervisor.h"
#include "plan/compiled_plan.h"
#include "sys/host_facts.h"

namespace belljar::backend {

class Live {
 public:
  /// What it fails by may be a lack that can be learned (LearnFromFailure): `facts` then holds it.
  static Expected<std::unique_ptr<Live>> Open(const Policy& policy, const Caller& caller, sys::HostFacts& facts,
                                              launch::Launcher& launcher);
  Live(const Live&) = delete;
  Live& operator=(const Live&) = delete;
  ~Live();

  Expected<Result> Run(const std::vector<std::string>& argv, const RunOptions& options);
  void Close() { state_.Abandon(launch::KillReason::kCancelled); }

 private:
  Live(const Policy& policy, const sys::HostFacts& facts, plan::CompiledPlan plan, launch::LiveState state)
      : policy_(policy), facts_(facts), plan_(std::move(plan)), state_(std::move(state)) {}

  Policy policy_;
  sys::HostFacts facts_;
  plan::CompiledPlan plan_;
  launch::LiveState state_;
  std::optional<launch::Sandbox> sandbox_;
  std::thread keeper_;
};

}  // namespace belljar::backend
