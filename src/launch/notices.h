// launch/notices.h: counts the system calls that the guest was refused.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <belljar/result.h>

#include "sys/seccomp_listener.h"

namespace belljar::launch {

class Notices {
 public:
  void Listen(base::UniqueFd fd) { listener_ = sys::SeccompListener(std::move(fd)); }
  int fd() const { return listener_.fd(); }
  bool listening() const { return listener_.valid(); }
  /// Answers one waiting call. After kMost the listener is closed: the kernel then refuses by itself, at no cost to us.
  void Answer();
  void AddTo(std::vector<Denial>& denials) const;

 private:
  static constexpr std::uint64_t kMost = 10'000;
  sys::SeccompListener listener_;
  std::map<int, std::uint64_t> counts_;
  std::uint64_t total_ = 0;
};

}  // namespace belljar::launch
