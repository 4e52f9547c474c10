// doctor/probe_idmap.h: mounts that show other owners than the filesystem has (Linux 5.12).
#pragma once

#include "doctor/probe_child.h"
#include "doctor/probe_userns.h"

namespace belljar::doctor {

/// The step that fails where the filesystem itself can't do it.
inline constexpr const char* kStepIdmap = "mount_setattr with an id map";

/// On a tmpfs of its own.
Trial TryIdmappedTmpfs(Way way);
/// On the filesystem of the current directory; only root of the host may.
Trial TryIdmappedCwd();

}  // namespace belljar::doctor
