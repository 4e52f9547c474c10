// backend/backend.h: who makes sandboxes. An engine has one; all of a run but its walls is the same with each.
//
// A backend whose walls are another program's has that program start our init in them, which executes the rest of the
// plan: so limits, filters, verdicts, live sandboxes and their commands are ours everywhere.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <belljar/engine.h>

#include "backend/attempt.h"
#include "backend/live.h"

namespace belljar::backend {

/// May be used from many threads.
class Backend {
 public:
  virtual ~Backend() = default;
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  /// What a sandbox under this policy would have here: its receipt. An Error where it would be refused: the message
  /// names what is missing, the hint what to do.
  Expected<Receipt> Assess(const Policy& policy, const Caller& caller);
  /// A sandbox for many commands.
  virtual Expected<std::shared_ptr<Live>> Create(const Policy& policy, const Caller& caller) = 0;
  /// A sandbox for one command. An Error means that the caller's arguments are wrong.
  virtual Expected<Attempt> Run(const RunRequest& run) = 0;
  /// Makes up to `count` ready ahead.
  virtual Expected<void> Prepare(const Policy& policy, std::size_t count);
  /// The plan for one command.
  virtual Expected<plan::CompiledPlan> Plan(const Policy& policy, const std::vector<std::string>& argv,
                                            const RunOptions& options) = 0;
};

/// What there is by that name; an Error names those that there are.
Expected<std::unique_ptr<Backend>> MakeBackend(const EngineOptions& options);

std::unique_ptr<Backend> MakeNative(const EngineOptions& options);
Expected<std::unique_ptr<Backend>> MakeBwrap(const EngineOptions& options);

/// Plans for display, where nothing is run.
Expected<plan::CompiledPlan> PlanForDisplay(const Policy& policy, const std::vector<std::string>& argv,
                                            const RunOptions& options, const sys::HostFacts& facts,
                                            const std::string& bwrap);

}  // namespace belljar::backend
