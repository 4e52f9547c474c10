// belljar/engine.h: runs commands under a policy.
//
//   auto engine = belljar::Engine::Open();
//   auto result = engine->Run(belljar::Policy::Profile("tool"), {"python3", "-c", "print(6*7)"});
//   std::cout << result->out.data;                                     // 42
//
// Run blocks until the command and everything it started is gone. It may be called from many threads at once; each call
// makes its own sandbox. An Engine is cheap, movable, and must outlive its calls.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <belljar/error.h>
#include <belljar/policy.h>
#include <belljar/result.h>

namespace belljar {

/// Ends runs from another thread or a signal handler. One token may be shared by many runs.
class CancelToken {
 public:
  static Expected<CancelToken> Make();
  CancelToken(CancelToken&&) noexcept;
  CancelToken& operator=(CancelToken&&) noexcept;
  ~CancelToken();
  void Cancel() const noexcept;  ///< Async-signal-safe.
  int fd() const noexcept { return fd_; }

 private:
  explicit CancelToken(int fd) : fd_(fd) {}
  int fd_ = -1;
};

enum class StreamMode : std::uint8_t {
  kCapture,   ///< Output goes into the Result, bounded by limits.output.
  kPassThrough,  ///< Output goes to the caller's own fds 1 and 2 as it comes; input from fd 0.
  kTerminal,  ///< As kPassThrough through a pseudo-terminal of the sandbox; fd 0 must be a terminal.
};

struct RunOptions {
  StreamMode streams = StreamMode::kCapture;
  std::string input;               ///< Fed to the command's standard input (kCapture only).
  bool input_from_caller = false;  ///< Read the caller's fd 0 instead of `input` (kCapture only).
  const CancelToken* cancel = nullptr;
};

/// Standard input for the command.
RunOptions Stdin(std::string text);

class Engine {
 public:
  static Expected<Engine> Open();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  /// Runs argv under the policy. An Error means that the caller's arguments are wrong (bad policy, empty argv, missing
  /// mount source); everything else, refusals included, is a Result with a verdict.
  Expected<Result> Run(const Policy& policy, const std::vector<std::string>& argv, const RunOptions& options = {});

  /// The launch plan in order, one line a step, with what each step protects against.
  Expected<std::string> Explain(const Policy& policy, const std::vector<std::string>& argv);
  /// The same as JSON.
  Expected<std::string> ExplainJson(const Policy& policy, const std::vector<std::string>& argv);

 private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace belljar
