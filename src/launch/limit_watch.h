// launch/limit_watch.h: the limits that only looking keeps, or only looking tells of: when to look, and what to end a
// run for.
#pragma once

#include <cstdint>

#include <belljar/policy.h>

#include "launch/sandbox.h"
#include "launch/uncounted.h"
#include "launch/verdict.h"
#include "launch/watcher.h"
#include "plan/compiled_plan.h"

namespace belljar::launch {

class LimitWatch {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  LimitWatch(const Sandbox& sandbox, const plan::CompiledPlan& plan, const Limits& limits);

  /// By which the sandbox's sockets are looked at.
  void SeeSockets(base::UniqueFd diag) { uncounted_.SeeSockets(std::move(diag)); }
  /// The command runs from now on.
  void Start(std::uint64_t now);
  /// Looks at what is due; kNone, or the first reason to end the run that was found.
  KillReason Check(std::uint64_t now);
  /// Whether a fork was refused: due by Check, and by an event of its own where the kernel sends one.
  bool ForkRefused();
  /// When something is due; kNever before the start.
  std::uint64_t next() const;

  const TreeUse& peak() const { return peak_; }
  std::uint64_t disk_peak() const { return disk_peak_; }

 private:
  KillReason CheckCpuTime(std::uint64_t now);
  KillReason CheckTree(std::uint64_t now);
  KillReason CheckDirectory(std::uint64_t now);
  KillReason CheckUncounted(std::uint64_t now);

  const Sandbox& sandbox_;
  const plan::CompiledPlan& plan_;
  const Limits& limits_;
  UncountedWatch uncounted_;
  int unseen_ = 0;
  TreeUse peak_;
  std::uint64_t disk_peak_ = 0;
  std::uint64_t cpu_check_ = kNever;
  std::uint64_t tree_check_ = kNever;
  std::uint64_t disk_check_ = kNever;
  std::uint64_t uncounted_check_ = kNever;
  std::uint64_t forks_check_ = kNever;
};

}  // namespace belljar::launch
