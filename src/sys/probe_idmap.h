// sys/probe_idmap.h: mounts that show other owners than the filesystem has (Linux 5.12).
#pragma once

#include "sys/probe_child.h"
#include "sys/probe_userns.h"

namespace belljar::sys {

/// The step that fails where the filesystem itself can't do it.
inline constexpr const char* kStepIdmap = "mount_setattr with an id map";

/// On a tmpfs of its own.
Trial TryIdmappedTmpfs(Way way);
/// On the filesystem of the current directory; only root of the host may.
Trial TryIdmappedCwd();

}  // namespace belljar::sys
