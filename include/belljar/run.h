// belljar/run.h: how one run is connected to its caller: streams, input, channels, cancelling.
//
//   auto token = belljar::CancelToken::Make();
//   engine->Run(policy, argv, {.input = "print(6*7)", .cancel = &*token});   // elsewhere: token->Cancel();
//
// RunOptions is a plain value; a CancelToken may be used from any thread and from signal handlers. Descriptors named
// here stay the caller's, who keeps them open until the run is over.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <belljar/caller.h>
#include <belljar/channel.h>
#include <belljar/error.h>
#include <belljar/limit.h>

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
  kPassThrough,  ///< Output goes to RunOptions::descriptors as it comes.
  kTerminal,     ///< As kPassThrough through a pseudo-terminal of the sandbox; `in` and `out` should be a terminal.
};

/// Where streamed output goes and input comes from; the latter after RunOptions::input. Bytes are passed on: the
/// descriptors themselves never get inside.
struct Descriptors {
  int in = -1;  ///< -1: nothing.
  int out = -1;
  int err = -1;
};
/// What this process has as its own; the choice of a command line.
inline constexpr Descriptors kStandardStreams{.in = 0, .out = 1, .err = 2};

enum class Trace : std::uint8_t {
  kOff,
  /// Each file or address that was refused or missing becomes a denial, with what would allow it. Slower, by how much
  /// the command opens files (docs/trace.md). Where the host forbids ptrace the run is refused, never run untraced. No
  /// other thread of this process may wait for any child (waitpid(-1)) meanwhile.
  kRefusals,
};

enum class OutputStream : std::uint8_t { kOut, kErr };
/// Called with each piece of output as it comes, one call at a time, by a thread of the run's own or by the one that
/// waits for it. The command waits meanwhile. Must not throw.
using OutputCallback = std::function<void(OutputStream stream, std::string_view piece)>;

struct TerminalSize {
  std::uint16_t rows = 0;  ///< 0: that of the terminal in Descriptors.
  std::uint16_t columns = 0;
};

struct RunOptions {
  StreamMode streams = StreamMode::kCapture;
  std::string input;        ///< Standard input as text, before what comes from descriptors.in.
  bool open_input = false;  ///< RunningCommand::Write gives more of it. In place of descriptors.in; for Start alone.
  Descriptors descriptors;
  /// In kCapture it is told what is captured as well; otherwise it is in place of descriptors.out and descriptors.err.
  OutputCallback on_output;
  TerminalSize terminal_size;  ///< With kTerminal, in a live sandbox.
  std::vector<Channel> channels;
  const CancelToken* cancel = nullptr;
  Trace trace = Trace::kOff;
  std::uint64_t wall_ns = kUnlimited;                            ///< Ends it earlier than the policy would.
  std::uint64_t cpu_time_ns = kUnlimited;                        ///< As wall_ns.
  std::string workdir;                                           ///< Inside; empty: the policy's.
  std::vector<std::pair<std::string, std::string>> environment;  ///< Over what the policy sets.
  std::optional<Caller> caller;                                  ///< Unset: this process.
};

/// Standard input for the command.
RunOptions Stdin(std::string text);

}  // namespace belljar
