// sys/socket_diag.h: what the kernel really holds for the TCP sockets of one network namespace.
//
// /proc/PID/net/tcp tells payload: a segment of one byte that may not be merged with its neighbours (MSG_EOR) takes 700
// times as much. sock_diag(7) tells the memory itself. Its socket belongs to the namespace that it was made in, so init
// makes it and hands it out.
#pragma once

#include <cstdint>
#include <optional>

#include "base/unique_fd.h"

namespace belljar::sys {

struct TcpUse {
  std::uint64_t bytes = 0;  ///< In all queues, both ways, with what the kernel spends around the payload.
  std::uint64_t orphans =
      0;  ///< Closed by their owner and not done yet. The host has a bound for all of them together.
};

/// Asks by a socket of NETLINK_SOCK_DIAG. Nothing where this kernel has no answer for TCP.
std::optional<TcpUse> LookAtTcp(const base::UniqueFd& diag);

/// How many orphans all of the host may have.
std::uint64_t MostTcpOrphans();

}  // namespace belljar::sys
