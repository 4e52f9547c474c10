// sys/probe_files.h: the calls that build a sandbox's file view, each tried in a throw-away child.
#pragma once

#include "sys/probe.h"
#include "sys/probe_userns.h"

namespace belljar::sys {

/// "mount api", "idmapped tmpfs", "idmapped workdir", "overlayfs", "openat2", "close_range".
Probes ProbeFiles(Way way);

}  // namespace belljar::sys
