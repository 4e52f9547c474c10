// backend/try_backends.h: which backends there are, and what each lacks on this host, found out by trying.
#pragma once

#include <vector>

#include "doctor/doctor.h"

namespace belljar::backend {

/// Runs one harmless command with each. Some tens of milliseconds.
std::vector<doctor::BackendFinding> TryBackends();

}  // namespace belljar::backend
