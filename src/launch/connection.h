// launch/connection.h: the parent's ends of what it shares with one command: a control socket and the three streams.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string_view>

#include <belljar/error.h>

#include "base/unique_fd.h"
#include "launch/stream.h"

namespace belljar::launch {

/// What the command reads: a text, or what comes from a descriptor of the caller; /dev/null where there is neither. The
/// text has to outlive the connection.
struct Input {
  std::string_view text;
  int source = -1;
};

/// Whose streams they are, on the host.
struct Owner {
  uid_t uid = 0;
  gid_t gid = 0;
};

struct Connection {
  base::UniqueFd control;  ///< Reports of init, or of the command's steward.
  base::UniqueFd input;    ///< Write end of the command's standard input, unless all of that is written already.
  InputPump feed;          ///< The rest of the input.
  base::UniqueFd output;   ///< Read ends. Neither of them blocks.
  base::UniqueFd error;

  /// Makes the control socket; gives the other end.
  Expected<base::UniqueFd> Open();
  /// Makes the command's streams and sends its ends: afterwards this process has none of them.
  Expected<void> SendStreams(Owner owner, const Input& given);
  Expected<void> SendCommand(std::span<const std::uint64_t> block) const;
  /// Has all ended that init, or the steward, answers for; it reports then. Nothing can be said to it any more.
  void Stop() const;
};

/// Sends `what` over a socket with one byte.
Expected<void> SendDescriptors(int socket, std::span<const int> what, const char* step);

}  // namespace belljar::launch
