// sys/user_namespace.h: a user namespace that nobody runs in, to map the owner of a mounted directory to a guest's ids.
#pragma once

#include <sys/types.h>

#include <belljar/error.h>

#include "base/unique_fd.h"

namespace belljar::sys {

/// For MOUNT_ATTR_IDMAP: files of `file_uid`/`file_gid` on disk are seen as `seen_uid`/`seen_gid`. Needs CAP_SYS_ADMIN.
Expected<base::UniqueFd> MakeIdMap(uid_t file_uid, gid_t file_gid, uid_t seen_uid, gid_t seen_gid);

}  // namespace belljar::sys
