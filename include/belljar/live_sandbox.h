// belljar/live_sandbox.h: a sandbox that lives and takes many commands.
//
//   auto sandbox = engine->Open(belljar::Policy().Writable("/srv/project", "/workspace"));
//   auto built = sandbox->Run({"make"});
//   auto tested = sandbox->Run({"./tests"});        // sees what the first one left in /workspace and /tmp
//   auto server = sandbox->Start({"./serve"});      // runs by itself: belljar/running_command.h
//
// Commands run one after the other or many at once, from many threads. Each has a deadline, CPU time, streams, a
// verdict and denials of its own, and ends with everything that it started, unless the policy keeps that (background).
// Files, memory, processes and the disk limit are the sandbox's: a command that goes beyond one of these limits ends
// the sandbox, and every command in it with that verdict. The engine must outlive its sandboxes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <belljar/error.h>
#include <belljar/policy.h>
#include <belljar/result.h>
#include <belljar/run.h>
#include <belljar/running_command.h>

namespace belljar {

class LiveSandbox {
 public:
  LiveSandbox(LiveSandbox&&) noexcept;
  LiveSandbox& operator=(LiveSandbox&&) noexcept;
  /// Closes it. No Run may be under way; commands that were started may.
  ~LiveSandbox();

  /// Blocks until the command and everything it started is gone. An Error means that the arguments are wrong, or that
  /// they ask for a trace, which commands of a live sandbox can't have yet.
  Expected<Result> Run(const std::vector<std::string>& argv, const RunOptions& options = {});
  /// The same without blocking. Descriptors, the token and what on_output needs have to stay until it is over.
  Expected<RunningCommand> Start(const std::vector<std::string>& argv, RunOptions options = {});

  /// Lowers limits while it lives; nothing else of the policy may differ from what it has. Memory, processes and CPUs
  /// count at once: a sandbox that uses more already ends, with that verdict. The other limits are those of commands
  /// that begin later. An Error, with nothing changed, where a value is higher, or where it can't be lowered: the sizes
  /// of private filesystems, memory and processes that were unlimited, and CPUs where no cgroup counts them from the
  /// start.
  Expected<void> Tighten(const Policy& policy);

  /// Ends all that runs in it; those commands are `cancelled`, as is each that comes later. May be called at any time,
  /// from any thread.
  void Close();
  /// What of files.protect appeared in writable mounts and no result has told yet (Result::appeared): processes that
  /// commands left in the background may have made it. After Close() it waits until they are gone, and is all.
  std::vector<std::string> Appeared();

 private:
  friend class Engine;
  struct State;
  explicit LiveSandbox(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace belljar
