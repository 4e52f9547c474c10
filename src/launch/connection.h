// launch/connection.h: the parent's ends of what it shares with one command: a control socket and the three streams.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string_view>

#include <belljar/channel.h>
#include <belljar/error.h>

#include "base/unique_fd.h"
#include "launch/stream.h"
#include "plan/launch_plan.h"

namespace belljar::launch {

/// What the caller connects the command with.
struct Attached {
  std::string_view text;  ///< What it reads first. Has to outlive the connection.
  int source = -1;        ///< What comes from this descriptor it reads then; /dev/null where there is neither.
  std::span<const Channel> channels = {};
  bool terminal = false;  ///< It will send one, in place of the streams.
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
  /// Channels go with them.
  Expected<void> SendStreams(Owner owner, const Attached& given);
  Expected<void> SendCommand(std::span<const std::uint64_t> block) const;
  /// Whether somebody is there who could take a command.
  bool ready() const;
  /// Asks something of who answers for the running command. By any thread. An Error where nobody is left.
  Expected<void> Ask(const plan::Order& order, const char* step) const;
  /// Has all ended that init, or the steward, answers for; it reports then. Nothing can be said to it any more.
  void Stop() const;
};

/// Sends `what` over a socket with one byte.
Expected<void> SendDescriptors(int socket, char word, std::span<const int> what, const char* step);

}  // namespace belljar::launch
