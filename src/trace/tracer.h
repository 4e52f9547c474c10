// trace/tracer.h: follows a run's processes and records which files and addresses they asked for, and with what
// outcome. Records only: no decision rests on what is read from the guest.
//
// A thread of its own, because a tracer is one; it needs nobody and holds nobody up. A program that waits for any child
// (waitpid(-1)) in another thread of the same process would take the stops away from it: such a program can't trace.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <belljar/error.h>

#include "base/unique_fd.h"
#include "sys/tracee.h"
#include "trace/trace_log.h"
#include "trace/trace_path.h"

namespace belljar::trace {

class Tracer {
 public:
  /// Follows `pid` from now on; when this returns it may be let go. The error says why it can't be followed.
  static Expected<std::unique_ptr<Tracer>> Start(pid_t pid, TraceDepth depth);
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;
  ~Tracer() { Stop(); }

  /// After the sandbox is gone. Kills what is still followed.
  void Stop();
  /// After Stop.
  TraceLog& log() { return log_; }

 private:
  explicit Tracer(TraceDepth depth);

  // A call that has begun, by thread.
  struct Pending {
    const plan::TracedCall* call = nullptr;
    plan::Use use = plan::Use::kLook;
    int directories[2] = {};
    std::string paths[2];  ///< Empty: none, or it could not be read.
    SocketAddress address;
  };

  void Loop();
  void Handle(const sys::TraceStop& stop);
  bool Begin(pid_t pid, Pending& pending);
  void ReadPaths(pid_t pid, const sys::TracedRegisters& registers, Pending& pending);
  void ReadAddress(pid_t pid, const sys::TracedRegisters& registers, Pending& pending);
  void End(pid_t pid, const Pending& pending, std::int64_t result);
  void Record(pid_t pid, const Pending& pending, int index, int error);
  void RecordAddress(const Pending& pending, int error);
  std::string ReadPath(pid_t pid, std::uint64_t address);
  std::string Resolve(std::string_view base, const std::string& given, LastLink last);

  TraceDepth depth_;
  TraceLog log_;
  std::thread thread_;
  base::UniqueFd lifeline_;  // Closed to wake the thread for the last time.
  pid_t waker_ = -1;
  bool begun_ = false;   // The command's own program runs.
  base::UniqueFd root_;  // The guest's.
  int link_budget_ = 200'000;
  std::unordered_map<pid_t, Pending> pending_;
  std::vector<char> buffer_;
};

}  // namespace belljar::trace
