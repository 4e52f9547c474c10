// sys/seccomp_listener.h: answers the system calls that a filter handed to its listener.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/unique_fd.h"

struct seccomp_notif_resp;  // NOLINT(readability-identifier-naming): the kernel chose it

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
    std::array<std::uint64_t, 6> arguments{};  ///< Registers, which nobody can change while the call waits.
  };
  std::optional<Call> Receive();
  /// SECURITY: nothing here reads the guest's memory, and all but what SharedMemoryAsked knows is answered by an error.
  void Refuse(const Call& call, int error);
  /// Lets the kernel execute it, as if no filter had asked. False, with nothing done, for calls that are not of the one
  /// kind that may.
  bool LetGoOn(const Call& call);
  /// From now on the kernel itself answers ENOSYS.
  void Close() { fd_.Reset(); }

 private:
  void Send(seccomp_notif_resp& answer);
  base::UniqueFd fd_;
};

struct SharedMemory {
  std::uint64_t bytes = 0;
  bool outlives = false;  ///< A SysV segment, which is there as long as its ipc namespace.
};

/// What a call asks for, if it is one for shared memory without a name and without any further meaning: mmap or shmget,
/// with nothing but the usual flags. All that is known of it is in registers.
std::optional<SharedMemory> SharedMemoryAsked(const SeccompListener::Call& call);

}  // namespace belljar::sys
