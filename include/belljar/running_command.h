// belljar/running_command.h: a command of a live sandbox that was started and runs by itself.
//
//   auto server = sandbox->Start({"python3", "-m", "http.server"}, {.on_output = Log});
//   auto shell = sandbox->Start({"sh"}, {.open_input = true});
//   shell->Write("echo hello\n");
//   shell->CloseInput();
//   std::cout << shell->Wait().out.data;                                // hello
//   server->Signal(SIGINT);
//
// All but moving and destroying it may be done from any thread, while another one waits.
#pragma once

#include <memory>
#include <string_view>

#include <belljar/error.h>
#include <belljar/result.h>
#include <belljar/run.h>

namespace belljar {

class RunningCommand {
 public:
  RunningCommand(RunningCommand&&) noexcept;
  RunningCommand& operator=(RunningCommand&&) noexcept;
  /// Ends it where it still runs. No Wait may be under way.
  ~RunningCommand();

  /// Blocks until the command and everything it started is gone. Each call gives the same result.
  const Result& Wait();
  /// Whether Wait would not block.
  bool over() const;

  /// To the command's process group, as a terminal does it for Ctrl-C. An Error where the number is none, or it is too
  /// late.
  Expected<void> Signal(int signal);
  /// More standard input, after RunOptions::input. Only with RunOptions::open_input. Blocks while the command reads
  /// slower; an Error where it reads no more.
  Expected<void> Write(std::string_view data);
  /// The end of that input.
  void CloseInput();
  /// Tells the command that its terminal has another size.
  Expected<void> Resize(TerminalSize size);
  /// Ends it and everything it started: it is `cancelled`.
  void Cancel();

 private:
  friend class LiveSandbox;
  struct State;
  explicit RunningCommand(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace belljar
