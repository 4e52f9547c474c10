// belljar/result.h: what a run gives back.
//
//   if (result->verdict == belljar::Verdict::kTimedOut) retry_with_more_time();
//   for (const belljar::Denial& d : result->denials) log(d.operation, d.target, d.grant);
//
// All types here are plain values without syscalls: copy, move and share them between threads like strings. The JSON
// form (ToJson) is documented in docs/result.md and stays stable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <belljar/level.h>

namespace belljar {

/// The one reason a run ended.
enum class Verdict : std::uint8_t {
  kExited,        ///< The command ended by itself; see exit_code.
  kSignaled,      ///< A signal that Belljar did not send ended it; see signal.
  kTimedOut,      ///< limits.wall
  kCpuTime,       ///< limits.cpu_time
  kOutOfMemory,   ///< limits.memory
  kProcessLimit,  ///< limits.processes
  kDiskLimit,     ///< limits.disk, limits.files or files.tmp: it failed and its private filesystem was full
  kFileSize,      ///< limits.file_size
  kOutputLimit,   ///< limits.output, while output was streamed
  kSyscall,       ///< A system call that is answered by death (foreign architecture).
  kCancelled,     ///< The caller ended it (Ctrl-C, Cancel).
  kRefused,       ///< Belljar would not run it: the policy can't be met here. The command never ran.
  kFailed,        ///< Belljar could not run it, or can't vouch for how it ended.
};
std::string_view Name(Verdict verdict);

/// One thing that was refused while running, with the smallest policy change that would allow it.
struct Denial {
  std::string kind;       ///< "syscall", "limit"; in a traced run also "file", "network".
  std::string operation;  ///< "mount", "fork", "write" …
  std::string target;     ///< What it was aimed at, where that is known.
  std::string rule;       ///< The rule that refused it, e.g. "seccomp: kernel" or "limits.processes = 64".
  std::string grant;      ///< The policy change that would allow it, as a flag; empty where nothing grants it.
  std::uint64_t count = 1;
  std::string resolved;  ///< "file": the target as an absolute path inside, without links.
  std::string fragment;  ///< "file": the grant as a piece of a policy in TOML.
};

enum class GuardState : std::uint8_t {
  kEnforced,  ///< Asked for and in force.
  kPartial,   ///< In force with a gap that `reason` names.
  kAbsent,    ///< Asked for and not to be had; only where min_level allows it.
  kOff,       ///< The policy did not ask for it.
};
std::string_view Name(GuardState state);

/// One line of a receipt: a mechanism, whether it really held, and through what.
struct GuardReceipt {
  std::string guard;  ///< "user namespace", "seccomp", "memory limit" …
  GuardState state = GuardState::kOff;
  std::string by;      ///< The mechanism: "cgroup v1 memory", "landlock ABI 7", "clone(CLONE_NEWPID)" …
  std::string reason;  ///< Why it is partial, absent or off.
};

/// A file or directory of the host that a run sees, read-only, because its program needs it: nobody named it.
struct Brought {
  std::string path;
  std::string why;  ///< "Python virtual environment of /srv/venv/bin/python" …
};

/// A descriptor of the caller's that the command was given.
struct ChannelReceipt {
  int number = 0;  ///< Inside.
  std::string name;
  std::string kind;  ///< "pipe", "socket" or "file".
};

struct Receipt {
  Level level = Level::kNone;  ///< The level that was really reached.
  std::string backend;         ///< "native"
  std::string form;            ///< "namespaces", "landlock-only", "process" …
  std::string host;            ///< Kernel release and architecture.
  std::vector<GuardReceipt> guards;
  std::vector<Brought> brought;
  std::vector<ChannelReceipt> channels;
};

struct Usage {
  std::uint64_t cpu_ms = 0;
  std::uint64_t memory_peak_bytes = 0;
  std::uint64_t processes_peak = 0;
  std::uint64_t disk_bytes = 0;
};

/// A captured stream. The head and the tail are kept when it was larger than limits.output.
struct Output {
  std::string data;           ///< Head and tail; where bytes were dropped a line between them says how many.
  std::uint64_t bytes = 0;    ///< All that the command wrote.
  std::uint64_t dropped = 0;  ///< How many of them are not in `data`.
};

struct [[nodiscard]] Result {
  Verdict verdict = Verdict::kFailed;
  std::optional<int> exit_code;  ///< Set when the command ended by itself.
  std::optional<int> signal;     ///< Set when a signal ended it.
  Output out;
  Output err;
  double duration_ms = 0;
  Usage usage;
  std::vector<Denial> denials;
  Receipt receipt;
  /// Paths inside, of those that files.protect names, that were not there before the run, or are other files now:
  /// whoever owns the directory should look at them before a tool of theirs executes them.
  std::vector<std::string> appeared;
  bool background = false;  ///< Processes that it started go on, as Policy::background says.
  std::string message;      ///< One line that explains any verdict but `exited`; empty for that one.
  std::string hint;         ///< What to do next, where the command failed in a way that a trace would explain.

  bool ok() const { return verdict == Verdict::kExited && exit_code == 0; }
};

/// The stable JSON form, one object without a newline at the end.
std::string ToJson(const Result& result);

/// The exit status `belljar run` ends with for this result.
int ExitStatus(const Result& result);

}  // namespace belljar
