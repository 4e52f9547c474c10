#include "launch/verdict.h"

#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

namespace belljar::launch {
namespace {

std::string Bytes(std::uint64_t bytes) {
  constexpr std::pair<std::uint64_t, char> kUnits[] = {{1ULL << 30, 'G'}, {1ULL << 20, 'M'}, {1ULL << 10, 'K'}};
  for (const auto& [size, letter] : kUnits) {
    if (bytes >= size && bytes % size == 0) return fmt::format("{}{}", bytes / size, letter);
  }
  return fmt::format("{}", bytes);
}

std::string Seconds(std::uint64_t ns) { return fmt::format("{:g}s", static_cast<double>(ns) / 1e9); }

// A limit was the reason: what it was, and the flag that raises it.
std::string LimitText(const char* what, const char* key, const std::string& value, const char* flag) {
  return fmt::format("{} (limits.{} = {}); allow more with {}", what, key, value, flag);
}

struct Ending {
  Verdict verdict;
  std::string message;
};

Ending DescribeKilled(KillReason reason, const Limits& limits) {
  switch (reason) {
    case KillReason::kWall:
      return {Verdict::kTimedOut, LimitText("ran longer than allowed", "wall", Seconds(limits.wall_ns), "--wall")};
    case KillReason::kCpuTime:
      return {Verdict::kCpuTime,
              LimitText("used more CPU time than allowed", "cpu_time", Seconds(limits.cpu_time_ns), "--cpu-time")};
    case KillReason::kMemory:
      return {Verdict::kOutOfMemory,
              LimitText("needed more memory than allowed", "memory", Bytes(limits.memory), "--memory")};
    case KillReason::kUncounted:
      return {Verdict::kOutOfMemory,
              LimitText("made the kernel hold more memory in sockets and locks of files than allowed", "memory",
                        Bytes(limits.memory), "--memory")};
    case KillReason::kObjects:
      return {
          Verdict::kOutOfMemory,
          "made the kernel keep more than 16,384 locks of files, 65,536 entries of epoll, 32,768 sockets, a quarter of "
          "the host's orphaned TCP connections, descriptors of inotify with 131,072 watches in all, threads that wait "
          "in "
          "poll() for 131,072 files, 131,072 open descriptors, or 1,024 on their way in sockets; no policy allows "
          "more, since other programs share them: use fewer"};
    case KillReason::kCrowdsHost:
      return {Verdict::kOutOfMemory,
              "had much in the buffers of its sockets while the host ran short of what all network namespaces share "
              "(net.ipv4.tcp_mem, udp_mem); no policy allows that: read what is sent, or use smaller buffers"};
    case KillReason::kProcesses:
      return {Verdict::kProcessLimit, LimitText("started more processes and threads than allowed", "processes",
                                                std::to_string(limits.processes), "--processes")};
    case KillReason::kDisk:
      return {Verdict::kDiskLimit,
              LimitText("wrote more to its private directory than allowed", "disk", Bytes(limits.disk), "--disk")};
    case KillReason::kOutput:
      return {Verdict::kOutputLimit, LimitText("wrote more output than allowed", "output",
                                               limits.output ? Bytes(*limits.output) : "64M", "--output")};
    case KillReason::kCancelled: return {Verdict::kCancelled, "ended by its caller"};
    case KillReason::kUncovered:
      return {
          Verdict::kFailed,
          "it was replaced, moved or removed on the host, which takes its cover away (protected, hidden, or a mount "
          "inside another one); so the sandbox was ended"};
    case KillReason::kSurvivors:
      return {
          Verdict::kFailed,
          "a command of this sandbox could not be ended (a process of it is killed but has not ended, as when another "
          "command holds a pipe that both have), or its steward was killed; so the sandbox was ended"};
    case KillReason::kLostOutput:
      return {Verdict::kFailed,
              "the command ended, but its output could not be read: another process holds the other end of it"};
    case KillReason::kUntraced: return {Verdict::kRefused, {}};
    case KillReason::kNone:
    case KillReason::kLostInit: break;
  }
  return {
      Verdict::kFailed,
      "the sandbox could not be watched any more (init did not answer, /proc hides it, or a look at it took too long), "
      "so it was ended"};
}

void SetKilled(KillReason reason, const Policy& policy, Result& result) {
  Ending ending = DescribeKilled(reason, policy.limits);
  result.verdict = ending.verdict;
  result.message = std::move(ending.message);
}

// The command ended and left a full private filesystem behind: that is why it failed.
const char* FullDisk(const plan::Report& report) {
  for (const plan::DiskUse& disk : report.disk) {
    if (disk.full_bytes != 0) return "bytes";
    if (disk.full_inodes != 0) return "files";
  }
  return nullptr;
}

void SetEnded(const plan::Report& report, const Policy& policy, Result& result) {
  const int status = report.status;
  if (WIFEXITED(status)) {
    result.verdict = Verdict::kExited;
    result.exit_code = WEXITSTATUS(status);
  } else {
    const int signal = WTERMSIG(status);
    result.signal = signal;
    result.verdict = Verdict::kSignaled;
    const char* name = sigabbrev_np(signal);
    result.message = name == nullptr ? fmt::format("ended by signal {}", signal) : fmt::format("ended by SIG{}", name);
    if (signal == SIGSYS) {
      result.verdict = Verdict::kSyscall;
      result.message = "ended by SIGSYS, the answer to system calls of a foreign architecture; no policy allows them";
    } else if (signal == SIGXFSZ && policy.limits.file_size != kUnlimited) {
      result.verdict = Verdict::kFileSize;
      result.message =
          LimitText("wrote a larger file than allowed", "file_size", Bytes(policy.limits.file_size), "--file-size");
    } else if (signal == SIGXCPU && policy.limits.cpu_time_ns != kUnlimited) {
      SetKilled(KillReason::kCpuTime, policy, result);
    }
  }
  const bool failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  if (!failed || result.verdict == Verdict::kSyscall || result.verdict == Verdict::kFileSize) return;
  if (const char* what = FullDisk(report); what != nullptr) {
    result.verdict = Verdict::kDiskLimit;
    result.message =
        what[0] == 'b'
            ? fmt::format(
                  "failed with a full private filesystem (limits.disk = {}, files.tmp = {}); allow more with "
                  "--disk or --tmp",
                  Bytes(policy.limits.disk), Bytes(policy.files.tmp))
            : LimitText("failed with no inode left in a private filesystem", "files",
                        std::to_string(policy.limits.files), "--files");
  }
}

void SetExecFailed(const plan::Report& report, Result& result) {
  result.verdict = Verdict::kExited;
  if (report.error == ENOENT || report.error == ENOTDIR) {
    result.exit_code = 127;
    result.message = "command not found inside the sandbox; mount what it needs with --ro";
    return;
  }
  result.exit_code = 126;
  result.message = fmt::format("the command can't be executed inside the sandbox: {}", std::strerror(report.error));
}

}  // namespace

void Decide(const Observed& observed, const Policy& policy, const std::string& step_text, Result& result) {
  if (observed.killed == KillReason::kUntraced) {
    result.verdict = Verdict::kRefused;
    result.message = observed.trace_lack;
    return;
  }
  if (observed.setup_failed) {
    result.verdict = Verdict::kFailed;
    result.message = fmt::format("set-up failed, the command never ran: {}: {}", step_text,
                                 std::strerror(observed.setup_failed->error));
    return;
  }
  if (observed.exec_failed) return SetExecFailed(*observed.exec_failed, result);
  // First what the parent did, in the order of events; the counters then catch what was faster than the parent.
  const bool lost = observed.killed == KillReason::kLostInit && observed.oom_kills > 0;  // And that is why.
  if (observed.killed != KillReason::kNone && !lost) {
    SetKilled(observed.killed, policy, result);
    if (observed.killed == KillReason::kUncovered) result.message = fmt::format("{}: {}", step_text, result.message);
    return;
  }
  if (observed.oom_kills > 0) return SetKilled(KillReason::kMemory, policy, result);
  if (observed.processes_refused > 0) return SetKilled(KillReason::kProcesses, policy, result);
  if (observed.ended) {
    if (observed.ended->kind == plan::ReportKind::kDeadline) return SetKilled(KillReason::kWall, policy, result);
    return SetEnded(*observed.ended, policy, result);
  }
  result.verdict = Verdict::kFailed;
  const int status = observed.init_status;
  result.message = fmt::format(
      "the sandbox's init ended without a report ({} {}){}", WIFSIGNALED(status) ? "signal" : "status",
      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), observed.started ? "" : "; the command never ran");
}

bool LooksRefused(const Result& result, std::string_view errors) {
  if (result.verdict != Verdict::kExited || result.exit_code == 0) return false;
  constexpr std::string_view kWords[] = {"No such file or directory",
                                         "ermission denied",
                                         "Read-only file system",
                                         "peration not permitted",
                                         "not found",
                                         "can't open",
                                         "cannot open",
                                         "ModuleNotFoundError",
                                         "FileNotFoundError",
                                         "PermissionError",
                                         "ENOENT",
                                         "EACCES",
                                         "EROFS",
                                         "etwork is unreachable",
                                         "failure in name resolut",
                                         "not known",
                                         "Could not resolve",
                                         "onnection refused",
                                         "Cannot find module",
                                         "does not exist"};
  return std::ranges::any_of(kWords, [&](std::string_view word) { return errors.contains(word); });
}

void AddLimitDenials(const Observed& observed, const Policy& policy, Result& result) {
  const Limits& limits = policy.limits;
  const auto add = [&](const char* operation, const char* key, const std::string& value, const char* flag,
                       std::uint64_t count) {
    result.denials.push_back({.kind = "limit",
                              .operation = operation,
                              .target = {},
                              .rule = fmt::format("limits.{} = {}", key, value),
                              .grant = flag,
                              .count = count});
  };
  if (observed.processes_refused > 0 || result.verdict == Verdict::kProcessLimit) {
    add("fork", "processes", std::to_string(limits.processes), "--processes",
        std::max<std::uint64_t>(1, observed.processes_refused));
  }
  if (result.verdict == Verdict::kOutOfMemory) {
    add("allocate memory", "memory", Bytes(limits.memory), "--memory", std::max<std::uint64_t>(1, observed.oom_kills));
  }
  if (result.verdict == Verdict::kTimedOut) add("run on", "wall", Seconds(limits.wall_ns), "--wall", 1);
  if (result.verdict == Verdict::kCpuTime) add("compute", "cpu_time", Seconds(limits.cpu_time_ns), "--cpu-time", 1);
  if (result.verdict == Verdict::kFileSize) add("write", "file_size", Bytes(limits.file_size), "--file-size", 1);
  if (result.verdict == Verdict::kOutputLimit || result.out.dropped > 0 || result.err.dropped > 0) {
    add("write output", "output", Bytes(limits.output.value_or(kCapturedOutput)), "--output", 1);
  }
  if (!observed.ended) return;
  for (const plan::DiskUse& disk : observed.ended->disk) {
    if (disk.full_bytes != 0) add("write", "disk", Bytes(limits.disk), "--disk", 1);
    if (disk.full_inodes != 0) add("create a file", "files", std::to_string(limits.files), "--files", 1);
  }
}

}  // namespace belljar::launch
