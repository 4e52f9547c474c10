// launch/limits_in_force.h: what a sandbox may have now. Memory and processes of a live one can be lowered while it is
// watched; by any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include <belljar/policy.h>

namespace belljar::launch {

class LimitsInForce {
 public:
  explicit LimitsInForce(const Limits& limits) : first_(limits), memory_(limits.memory), processes_(limits.processes) {}

  std::uint64_t memory() const { return memory_; }
  std::uint64_t processes() const { return processes_; }
  /// All others, as they were from the start.
  const Limits& first() const { return first_; }
  Policy In(Policy policy) const {
    policy.limits.memory = memory_;
    policy.limits.processes = processes_;
    return policy;
  }
  void Lower(const Limits& limits) {
    memory_ = limits.memory;
    processes_ = limits.processes;
  }

 private:
  Limits first_;
  std::atomic<std::uint64_t> memory_, processes_;
};

}  // namespace belljar::launch
