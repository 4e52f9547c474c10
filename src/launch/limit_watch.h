// launch/limit_watch.h: the limits that no kernel mechanism keeps by itself: when to look, and what to end a run for.
// Whatever a guest can make slow is looked at by threads (launch/watched_limits.h); here is only what costs one read of
// a file that the kernel keeps for us.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <utility>

#include <belljar/policy.h>

#include "launch/look_thread.h"
#include "launch/sandbox.h"
#include "launch/verdict.h"
#include "launch/watched_limits.h"
#include "plan/compiled_plan.h"

namespace belljar::launch {

class LimitWatch {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  LimitWatch(const Sandbox& sandbox, const plan::CompiledPlan& plan, const LimitsInForce& limits);

  /// By which the sandbox's sockets are looked at. Before the start.
  void SeeSockets(base::UniqueFd diag) { kept_.SeeSockets(std::move(diag)); }
  /// Whom of the sandbox nobody can look into, and need not. Before the start.
  void AllowToHide(std::function<bool(pid_t)> may) { kept_.AllowToHide(std::move(may)); }
  /// The command runs from now on.
  void Start(std::uint64_t now);
  /// Instead of that: one command of a live sandbox, which has CPU time of its own.
  void StartCommand(pid_t steward, std::uint64_t now, std::uint64_t cpu_time_ns);
  /// Does what is due; kNone, or the first reason to end the run that was found.
  KillReason Check(std::uint64_t now);
  /// Whether a fork was refused: due by Check, and by an event of its own where the kernel sends one.
  bool ForkRefused();
  /// When something is due; kNever before the start.
  std::uint64_t next() const;
  /// Readable when a thread found a reason, which Check then gives; -1 for those that have not begun.
  std::array<int, 3> news_fds() const {
    return {tree_thread_.news_fd(), kept_thread_.news_fd(), command_thread_.news_fd()};
  }

  /// When the guest is dead. Only then the peaks are known.
  void Stop();
  const TreeUse& peak() const { return tree_.peak(); }
  std::uint64_t commands_cpu_ns() const { return command_.peak_ns(); }
  std::uint64_t disk_peak() const { return kept_.disk_peak(); }

 private:
  KillReason CheckCpuTime(std::uint64_t now);
  KillReason CheckThreads(std::uint64_t now);

  const Sandbox& sandbox_;
  const plan::CompiledPlan& plan_;
  const LimitsInForce& limits_;
  TreeLimits tree_;
  KeptLimits kept_;
  CommandTime command_;
  LookThread tree_thread_{tree_};
  LookThread kept_thread_{kept_};
  LookThread command_thread_{command_};
  std::uint64_t cpu_check_ = kNever;
  std::uint64_t forks_check_ = kNever;
  std::uint64_t threads_check_ = kNever;
};

}  // namespace belljar::launch
