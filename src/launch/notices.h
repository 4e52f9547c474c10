// launch/notices.h: counts the system calls that the guest was refused, and those that are allowed up to an amount.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <belljar/result.h>

#include "sys/seccomp_listener.h"

namespace belljar::launch {

/// Whose ipc namespace SysV segments would be in. The host's would keep them for ever, so there none is allowed.
enum class Segments : std::uint8_t { kHosts, kOwn };

class Notices {
 public:
  void Listen(base::UniqueFd fd) { listener_ = sys::SeccompListener(std::move(fd)); }
  /// Where nobody counts shared memory without a name, this much of it may be asked for, all in all: what is given
  /// back can't be seen, so it is not counted back.
  void AllowSharedMemory(std::uint64_t bytes, Segments segments) {
    shared_memory_left_ = bytes;
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
  std::uint64_t shared_memory_left_ = 0;
  std::uint64_t shared_memory_refused_ = 0;
  Segments segments_ = Segments::kHosts;
};

}  // namespace belljar::launch
