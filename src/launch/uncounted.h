// launch/uncounted.h: memory that the kernel holds for a guest and charges to no cgroup. Bounded by looking now and
// then.
//
// Everything else that a guest can make the kernel hold is charged to its cgroup, by measure (tests/containment:
// test_hoards.py). These are not, neither by v1 nor by v2: record locks, replies that wait in netlink sockets, and what
// waits in connections that nobody has accepted yet, or in a datagram that is not sent off yet.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace belljar::launch {

struct Uncounted {
  std::uint64_t socket_bytes = 0;  ///< In the buffers of sockets other than unix ones. 0 while they are few.
  std::uint64_t lock_bytes = 0;    ///< Of record locks, when they were looked at.
};

/// Whose network the guest is in: of a shared one nobody can tell which sockets are the guest's.
enum class Sockets : bool { kShared, kOwn };

class UncountedWatch {
 public:
  UncountedWatch(pid_t init, Sockets sockets, std::uint64_t memory_limit)
      : init_(init), sockets_(sockets), enough_(memory_limit / 2) {}

  /// Nothing where it can't be seen.
  std::optional<Uncounted> Look(std::uint64_t now);
  /// More than half as much as the memory limit, or more locks than any program has use for (16,384).
  bool IsTooMuch(const Uncounted& seen) const;

 private:
  std::optional<std::uint64_t> SocketBytes() const;
  std::optional<std::uint64_t> LockBytes(std::uint64_t now);

  pid_t init_;
  Sockets sockets_;
  std::uint64_t enough_;
  std::uint64_t swept_at_ = 0;                    ///< When all locks were counted last.
  std::size_t swept_ = 0;                         ///< Processes whose locks were counted since the last sweep began.
  std::uint64_t locks_ = 0;                       ///< What they had.
  std::uint64_t least_slab_ = ~std::uint64_t{0};  ///< Memory of the kernel, all of the host, when it was smallest.
};

}  // namespace belljar::launch
