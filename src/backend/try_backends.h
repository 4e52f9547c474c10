// backend/try_backends.h: which backends there are, and what each lacks on this host, found out by trying.
#pragma once

#include <vector>

#include "sys/doctor.h"

namespace belljar::backend {

/// Runs one harmless command with each. Some tens of milliseconds.
std::vector<sys::BackendFinding> TryBackends();

}  // namespace belljar::backend
