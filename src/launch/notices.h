// launch/notices.h: counts the system calls that the guest was refused, and those that are allowed up to an amount.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include <belljar/result.h>

#include "sys/seccomp_listener.h"

namespace belljar::launch {

/// Whose ipc namespace SysV segments would be in. The host's would keep them for ever, so there none is allowed.
enum class Segments : std::uint8_t { kHosts, kOwn };

/// Where nobody counts shared memory without a name, this much of it may be asked for in a sandbox, by all of its
/// commands together: what is given back can't be seen, so it is not counted back. By any thread.
class SharedMemoryBudget {
 public:
  explicit SharedMemoryBudget(std::uint64_t memory_limit) : left_(memory_limit / kPart) {}
  bool Take(std::uint64_t bytes) {
    std::uint64_t left = left_;
    while (bytes <= left) {
      if (left_.compare_exchange_weak(left, left - bytes)) return true;
    }
    return false;
  }

 private:
  static constexpr std::uint64_t kPart = 4;
  std::atomic<std::uint64_t> left_;
};

class Notices {
 public:
  void Listen(base::UniqueFd fd) { listener_ = sys::SeccompListener(std::move(fd)); }
  /// Within a budget that outlives this.
  void AllowSharedMemory(SharedMemoryBudget& budget, Segments segments) {
    shared_memory_ = &budget;
    segments_ = segments;
  }
  int fd() const { return listener_.fd(); }
  bool listening() const { return listener_.valid(); }
  /// Answers one waiting call. After kMost the listener is closed: the kernel then refuses by itself, at no cost to us.
  void Answer();
  void AddTo(std::vector<Denial>& denials) const;

 private:
  bool TakeSharedMemory(const sys::SeccompListener::Call& call);
  static constexpr std::uint64_t kMost = 10'000;
  sys::SeccompListener listener_;
  std::map<int, std::uint64_t> counts_;
  std::uint64_t total_ = 0;
  SharedMemoryBudget* shared_memory_ = nullptr;
  std::uint64_t shared_memory_refused_ = 0;
  Segments segments_ = Segments::kHosts;
};

}  // namespace belljar::launch
