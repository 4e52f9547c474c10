// launch/verdict.h: from what was seen to the one reason a run ended. A pure function: no clocks, no syscalls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <belljar/policy.h>
#include <belljar/result.h>

#include "plan/launch_plan.h"

namespace belljar::launch {

/// What the parent ended a run for, in the order of which came first; only the first counts.
enum class KillReason : std::uint8_t {
  kNone,
  kWall,
  kCpuTime,
  kMemory,
  kUncounted,   ///< Of what the kernel holds for it and no cgroup counts.
  kObjects,     ///< More locks, entries of epoll or the like than a run may have, whatever its policy.
  kCrowdsHost,  ///< Of what TCP or UDP may have on the host it has much, and little is left.
  kProcesses,
  kDisk,
  kOutput,
  kCancelled,
  kUncovered,   ///< The host took away what hid or kept something.
  kLostInit,    ///< Init did not answer.
  kSurvivors,   ///< A command of a live sandbox, or its steward, could not be ended in order.
  kLostOutput,  ///< It ended by itself, and what it wrote can't be had.
  kUntraced,    ///< It was to be traced and can't be.
};

struct Observed {
  KillReason killed = KillReason::kNone;
  std::optional<plan::Report> setup_failed;  ///< The command never ran.
  std::optional<plan::Report> exec_failed;
  std::optional<plan::Report> ended;  ///< kEnded, kDeadline or kStopped
  bool started = false;
  std::uint64_t oom_kills = 0;
  std::uint64_t processes_refused = 0;
  int init_status = 0;
  std::int32_t uncovered = -1;  ///< The step whose mount is gone.
  std::string trace_lack;       ///< Why it can't be traced.
};

/// What limits.output is when the policy does not say.
inline constexpr std::uint64_t kCapturedOutput = 64 * 1024;
inline constexpr std::uint64_t kStreamedOutput = 64ULL << 20;

/// Fills verdict, exit_code, signal and message of `result`. `step_text` says what a failed step was, or the path of a
/// lost cover.
void Decide(const Observed& observed, const Policy& policy, const std::string& step_text, Result& result);

/// True when the command failed and what it wrote last speaks of something refused or not found.
bool LooksRefused(const Result& result, std::string_view errors);

/// Adds each limit that was hit to the denials. After Decide.
void AddLimitDenials(const Observed& observed, const Policy& policy, Result& result);

}  // namespace belljar::launch
