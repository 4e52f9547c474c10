// belljar/run.h: how one run is connected to its caller: streams, input, cancelling.
//
//   auto token = belljar::CancelToken::Make();
//   engine->Run(policy, argv, {.input = "print(6*7)", .cancel = &*token});   // elsewhere: token->Cancel();
//
// RunOptions is a plain value; a CancelToken may be used from any thread and from signal handlers.
#pragma once

#include <cstdint>
#include <string>

#include <belljar/error.h>

namespace belljar {

/// Ends runs from another thread or a signal handler. One token may be shared by many runs.
class CancelToken {
 public:
  static Expected<CancelToken> Make();
  CancelToken(CancelToken&& other) noexcept;
  CancelToken& operator=(CancelToken&& other) noexcept;
  ~CancelToken();
  void Cancel() const noexcept;  ///< Async-signal-safe.
  int fd() const noexcept { return fd_; }

 private:
  explicit CancelToken(int fd) : fd_(fd) {}
  int fd_ = -1;
};

enum class StreamMode : std::uint8_t {
  kCapture,      ///< Output goes into the Result, bounded by limits.output.
  kPassThrough,  ///< Output goes to the caller's own fds 1 and 2 as it comes; input from fd 0.
  kTerminal,     ///< As kPassThrough through a pseudo-terminal of the sandbox; fds 0 and 1 should be a terminal.
};

enum class InputFrom : std::uint8_t {
  kText,    ///< RunOptions::input; empty means no input at all.
  kCaller,  ///< The caller's fd 0. Always so in the modes that stream.
};

enum class Trace : std::uint8_t {
  kOff,
  /// Each file or address that was refused or missing becomes a denial, with what would allow it. Slower, by how much
  /// the command opens files (docs/trace.md). Where the host forbids ptrace the run is refused, never run untraced. No
  /// other thread of this process may wait for any child (waitpid(-1)) meanwhile.
  kRefusals,
};

struct RunOptions {
  StreamMode streams = StreamMode::kCapture;
  std::string input;
  InputFrom input_from = InputFrom::kText;
  const CancelToken* cancel = nullptr;
  Trace trace = Trace::kOff;
};

/// Standard input for the command.
RunOptions Stdin(std::string text);

}  // namespace belljar
