// plan/protect.h: what stays read-only inside the writable mounts of a policy (files.protect), as it is on the host
// now.
#pragma once

#include <string>
#include <vector>

#include <belljar/policy.h>

#include "sys/files.h"

namespace belljar::plan {

struct ProtectedFile {
  std::string name;    ///< As seen from the mount.
  std::string source;  ///< On the host.
  std::string target;  ///< Inside.
  sys::FileKind kind = sys::FileKind::kAbsent;
};

struct ProtectedFiles {
  std::vector<ProtectedFile> present;
  std::vector<ProtectedFile> absent;  ///< Nothing is there to mount on, so the guest can make them.
  std::vector<ProtectedFile> links;   ///< A link can't be mounted on, so the guest can replace it.
};

/// Of one writable mount. Names that lie in another mount of the policy are that one's.
ProtectedFiles FindProtected(const Policy& policy, const Mount& mount);

}  // namespace belljar::plan
