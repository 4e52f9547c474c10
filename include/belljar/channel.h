// belljar/channel.h: a descriptor of the caller's that a command itself gets, at a number of its choice.
//
//   engine->Run(policy, {"tool"}, {.channels = {{.fd = socket, .number = 3, .name = "tools"}}});
//
// Everything else stays closed. A plain value; the descriptor stays the caller's, who keeps it open until the run is
// over.
#pragma once

#include <string>

namespace belljar {

/// A pipe, a socket or a plain file. Whoever holds one end of a socket can be sent descriptors by whoever holds the
/// other.
struct Channel {
  int fd = -1;
  int number = 3;    ///< What the command knows it by: 3 to 63.
  std::string name;  ///< For `explain` and the receipt.
};

}  // namespace belljar
