// doctor/probe_files.h: the calls that build a sandbox's file view, each tried in a throw-away child.
#pragma once

#include "doctor/probe.h"
#include "doctor/probe_userns.h"

namespace belljar::doctor {

/// "mount api", "idmapped tmpfs", "idmapped workdir", "overlayfs", "openat2", "close_range".
Probes ProbeFiles(Way way);

}  // namespace belljar::doctor
