// Walls made by bubblewrap, for hosts that let it have namespaces and nobody else.
#include <sys/stat.h>

#include <utility>

#include "backend/backend.h"
#include "sys/files.h"
#include "sys/host_facts.h"

namespace belljar::backend {
namespace {

class Bwrap final : public Backend {
 public:
  Bwrap(std::string program, const EngineOptions& options)
      : program_(std::move(program)), facts_(sys::ReadHostFacts()), launching_(options.launching) {}

  Expected<std::shared_ptr<Live>> Create(const Policy& policy, const Caller& caller) override {
    sys::HostFacts facts = facts_;
    return Live::Open(policy, caller, facts, launcher_, program_);
  }

  Expected<Attempt> Run(const RunRequest& asked) override {
    RunRequest run = asked;
    run.bwrap = program_;
    run.launcher = launching_ == Launching::kLauncher ? &launcher_ : nullptr;
    return RunOnce(run, facts_);
  }

  Expected<plan::CompiledPlan> Plan(const Policy& policy, const std::vector<std::string>& argv,
                                    const RunOptions& options) override {
    return PlanForDisplay(policy, argv, options, facts_, program_);
  }

 private:
  const std::string program_;
  const sys::HostFacts facts_;
  const Launching launching_;
  launch::Launcher launcher_;  // Starts with the first sandbox that needs it.
};

}  // namespace

Expected<std::unique_ptr<Backend>> MakeBwrap(const EngineOptions& options) {
  std::string program = sys::FindOnPath("bwrap");
  if (program.empty()) {
    return std::unexpected(Error{.step = "choose backend bwrap",
                                 .message = "there is no bwrap on PATH",
                                 .hint = "install it (apt-get install bubblewrap), or use --backend native"});
  }
  // SECURITY: its caller can't end what it has become, and it bounds no filesystem.
  if ((sys::Status(program).mode & S_ISUID) != 0) {
    return std::unexpected(Error{.step = "choose backend bwrap",
                                 .message = program + " is set-uid, in which form it takes no sizes of filesystems",
                                 .hint = "use --backend native, or a bwrap that is not (chmod u-s)"});
  }
  return std::make_unique<Bwrap>(std::move(program), options);
}

}  // namespace belljar::backend
