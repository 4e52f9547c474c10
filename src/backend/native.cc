// Belljar's own walls: made by sandbox init, in the strongest form that the host has.
#include <mutex>
#include <utility>

#include "backend/backend.h"
#include "backend/pool.h"
#include "sys/host_facts.h"

namespace belljar::backend {
namespace {

class Native final : public Backend {
 public:
  explicit Native(const EngineOptions& options) : facts_(sys::ReadHostFacts()) {
    if (options.launching == Launching::kLauncher) launcher_ = std::make_unique<launch::Launcher>();
    if (options.warm > 0) pool_ = std::make_unique<Pool>(options.warm, launcher_.get());
  }

  Expected<std::shared_ptr<Live>> Create(const Policy& policy, const Caller& caller) override {
    sys::HostFacts facts = Facts();
    auto live = Live::Open(policy, caller, facts, LiveLauncher());
    Learn(facts);
    return live;
  }

  Expected<Attempt> Run(const RunRequest& asked) override {
    sys::HostFacts facts = Facts();
    RunRequest run = asked;
    run.launcher = launcher_.get();
    auto warm = pool_ ? RunWarm(*pool_, run, facts) : std::nullopt;
    auto attempt = warm ? std::move(*warm) : RunWithFallback(run, facts);
    Learn(facts);
    return attempt;
  }

  Expected<void> Prepare(const Policy& policy, std::size_t count) override {
    return pool_ ? pool_->Fill(policy, Facts(), count) : Backend::Prepare(policy, count);
  }

  Expected<plan::CompiledPlan> Plan(const Policy& policy, const std::vector<std::string>& argv,
                                    const RunOptions& options) override {
    return PlanForDisplay(policy, argv, options, Facts(), {});
  }

 private:
  /// Live sandboxes always have one: what a thread of this process makes itself ends with that thread.
  launch::Launcher& LiveLauncher() {
    if (launcher_) return *launcher_;
    const std::lock_guard lock(mutex_);
    if (!live_launcher_) live_launcher_ = std::make_unique<launch::Launcher>();
    return *live_launcher_;
  }
  sys::HostFacts Facts() {
    const std::lock_guard lock(mutex_);
    return facts_;
  }
  void Learn(const sys::HostFacts& learned) {
    const std::lock_guard lock(mutex_);
    const bool same =
        learned.user_namespaces == facts_.user_namespaces && learned.seccomp_listener == facts_.seccomp_listener;
    if (!same) facts_ = learned;
  }

  std::mutex mutex_;
  sys::HostFacts facts_;  ///< Guarded by mutex_: a run that finds a lack writes it down for the next.
  std::unique_ptr<launch::Launcher> launcher_;  ///< None for Launching::kSelf. Before the pool, which uses it.
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<launch::Launcher> live_launcher_;  ///< Guarded by mutex_; where there is no other.
};

}  // namespace

std::unique_ptr<Backend> MakeNative(const EngineOptions& options) { return std::make_unique<Native>(options); }

}  // namespace belljar::backend
