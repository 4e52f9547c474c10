// sys/seccomp_listener.h: answers the system calls that a filter handed to its listener.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "base/unique_fd.h"

namespace belljar::sys {

class SeccompListener {
 public:
  SeccompListener() = default;
  explicit SeccompListener(base::UniqueFd fd) : fd_(std::move(fd)) {}

  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  /// The next waiting call, or nothing. Never blocks once the descriptor was reported readable.
  struct Call {
    std::uint64_t id = 0;
    int number = 0;
  };
  std::optional<Call> Receive();
  /// SECURITY: only ever answers with an error: nothing here reads the guest's memory or lets a call go on.
  void Refuse(const Call& call, int error);
  /// From now on the kernel itself answers ENOSYS.
  void Close() { fd_.Reset(); }

 private:
  base::UniqueFd fd_;
};

}  // namespace belljar::sys
