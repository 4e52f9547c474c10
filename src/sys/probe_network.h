// sys/probe_network.h: what can be done inside a network namespace of one's own.
#pragma once

#include "sys/probe.h"
#include "sys/probe_userns.h"

namespace belljar::sys {

/// "loopback", "nftables".
Probes ProbeNetwork(Way way);

}  // namespace belljar::sys
