// launch/reception.h: reads what init tells its parent, one datagram at a time.
//
// Init is a copy of ours, but it lives beside a guest: nothing it could be made to send may confuse the parent.
#pragma once

#include <sys/types.h>

#include "base/unique_fd.h"
#include "plan/launch_plan.h"

namespace belljar::launch {

struct Received {
  plan::Report report{};
  base::UniqueFd fd;  ///< What came with it; at most one is kept, more are closed.
  pid_t sender = 0;   ///< As the kernel says, where the socket asks for that (SO_PASSCRED).
};

enum class Reception : unsigned char {
  kReport,
  kNothing,  ///< For now.
  kClosed,   ///< The other end is gone.
  kForeign,  ///< Not a report: no init of ours sends such a thing.
};

/// Takes one datagram from the control socket, without waiting.
Reception ReceiveReport(int socket, Received& received);
/// The same, and leaves it there. Descriptors are copies.
Reception PeekReport(int socket, Received& received);

}  // namespace belljar::launch
