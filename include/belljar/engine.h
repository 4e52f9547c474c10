// belljar/engine.h: runs commands under a policy.
//
//   auto engine = belljar::Engine::Open();
//   auto result = engine->Run(belljar::Policy::Profile("tool"), {"python3", "-c", "print(6*7)"});
//   std::cout << result->out.data;                                     // 42
//
// Run blocks until the command and everything it started is gone. It may be called from many threads at once; each call
// makes its own sandbox. An Engine is cheap, movable, and must outlive its calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <belljar/caller.h>
#include <belljar/error.h>
#include <belljar/live_sandbox.h>
#include <belljar/policy.h>
#include <belljar/result.h>
#include <belljar/run.h>

namespace belljar {

enum class Launching : std::uint8_t {
  /// By a small process of the engine's own, started with the first sandbox: what a caller has in memory neither slows
  /// a
  /// start down nor is in any process of a sandbox.
  kLauncher,
  /// By this process itself. Cheaper for a small program that runs one command and ends.
  kSelf,
};

struct EngineOptions {
  /// Who makes the walls: "native", or "bwrap" (docs/backends.md).
  std::string backend = "native";
  Launching launching = Launching::kLauncher;
  /// How many sandboxes may be kept ready, made ahead for policies that are used again and again. Each is used once. A
  /// ready one saves most of the start-up and costs some processes and memory; none is kept for a policy that was not
  /// used for ten seconds. 0: none.
  std::size_t warm = 0;
};

class Engine {
 public:
  static Expected<Engine> Open(const EngineOptions& options = {});
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  /// Runs argv under the policy. An Error means that the caller's arguments are wrong (bad policy, empty argv, missing
  /// mount source); everything else, refusals included, is a Result with a verdict.
  Expected<Result> Run(const Policy& policy, const std::vector<std::string>& argv, const RunOptions& options = {});

  /// Makes a sandbox that lives until it is closed and takes many commands. An Error where it can't be had.
  Expected<LiveSandbox> Open(const Policy& policy, const std::optional<Caller>& caller = std::nullopt);

  /// What a sandbox under this policy would have, guard by guard; nothing is run. An Error where it would be refused.
  Expected<Receipt> Assess(const Policy& policy, const std::optional<Caller>& caller = std::nullopt);

  /// Makes up to `count` sandboxes ready for the policy (at most EngineOptions::warm), and waits for them. Without this
  /// they come with demand: the second run with a policy finds one.
  Expected<void> Prepare(const Policy& policy, std::size_t count = 1);

  /// The launch plan in order, one line a step, with what each step protects against.
  Expected<std::string> Explain(const Policy& policy, const std::vector<std::string>& argv,
                                const RunOptions& options = {});
  /// The same as JSON.
  Expected<std::string> ExplainJson(const Policy& policy, const std::vector<std::string>& argv,
                                    const RunOptions& options = {});

 private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace belljar
