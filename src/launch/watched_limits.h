// launch/watched_limits.h: the limits that are kept by looking at the guest from outside. Each a Looker with a thread
// of its own, so that none of them has to wait for another one's look.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>

#include <belljar/policy.h>

#include "launch/limits_in_force.h"
#include "launch/look_thread.h"
#include "launch/sandbox.h"
#include "launch/uncounted.h"
#include "launch/watcher.h"
#include "plan/compiled_plan.h"

namespace belljar::launch {

/// The earliest moment at which so much CPU time can be used up, were all CPUs busy: no polling, and exact in the end.
std::uint64_t EarliestCpuTime(std::uint64_t now, std::uint64_t left);

/// Memory, processes and CPU time where no cgroup counts them.
class TreeLimits final : public Looker {
 public:
  TreeLimits(const Sandbox& sandbox, const plan::CompiledPlan& plan, const LimitsInForce& limits)
      : sandbox_(sandbox),
        watched_(plan.watched),
        limits_(limits),
        own_tasks_(plan.plan().live != 0 ? plan::kReadyTasks : 0) {}
  void Start(std::uint64_t now);
  KillReason Look(std::uint64_t now) override;
  std::uint64_t next() const override { return next_; }
  /// Shared pages alone may explain what was seen: a second look is under way, which is slow. From any thread.
  bool doubts() const { return doubts_; }
  const TreeUse& peak() const { return peak_; }

 private:
  const Sandbox& sandbox_;
  const plan::WatchedLimits& watched_;
  const LimitsInForce& limits_;
  std::uint64_t own_tasks_;  ///< Below init, and not the guest's.
  std::uint64_t next_ = kNever;
  std::atomic<bool> doubts_ = false;
  TreeUse peak_;
};

/// CPU time of one command of a live sandbox: of its steward and all below it.
class CommandTime final : public Looker {
 public:
  void Start(pid_t steward, std::uint64_t now, std::uint64_t limit_ns);
  KillReason Look(std::uint64_t now) override;
  std::uint64_t next() const override { return next_; }
  std::uint64_t peak_ns() const { return peak_ns_; }

 private:
  pid_t steward_ = -1;
  std::uint64_t limit_ns_ = 0;
  std::uint64_t next_ = kNever;
  std::uint64_t peak_ns_ = 0;
};

/// What a guest keeps that no process shows: files in its private directory, and what the kernel holds for it.
class KeptLimits final : public Looker {
 public:
  KeptLimits(const Sandbox& sandbox, const plan::CompiledPlan& plan, const LimitsInForce& limits);
  void SeeSockets(base::UniqueFd diag) { uncounted_.SeeSockets(std::move(diag)); }
  void AllowToHide(std::function<bool(pid_t)> may) { uncounted_.AllowToHide(std::move(may)); }
  void Start(std::uint64_t now);
  KillReason Look(std::uint64_t now) override;
  std::uint64_t next() const override { return std::min(disk_check_, uncounted_check_); }
  std::uint64_t disk_peak() const { return disk_peak_; }

 private:
  KillReason LookAtDisk(std::uint64_t now);
  KillReason LookAtUncounted(std::uint64_t now);

  const Sandbox& sandbox_;
  const plan::CompiledPlan& plan_;
  const LimitsInForce& limits_;
  UncountedWatch uncounted_;
  int unseen_ = 0;
  std::uint64_t disk_peak_ = 0;
  std::uint64_t disk_check_ = kNever;
  std::uint64_t uncounted_check_ = kNever;
};

}  // namespace belljar::launch
