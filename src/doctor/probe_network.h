// doctor/probe_network.h: what can be done inside a network namespace of one's own.
#pragma once

#include "doctor/probe.h"
#include "doctor/probe_userns.h"

namespace belljar::doctor {

/// "loopback", "nftables".
Probes ProbeNetwork(Way way);

}  // namespace belljar::doctor
