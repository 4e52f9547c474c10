// plan/protect.h: what stays read-only inside the writable mounts of a policy (files.protect), as it is on the host
// now.
#pragma once

#include <string>
#include <vector>

#include <belljar/policy.h>

#include "sys/files.h"

namespace belljar::plan {

struct ProtectedFile {
  std::string name;     ///< As seen from the mount.
  std::string pattern;  ///< The entry of files.protect that names it.
  std::string source;   ///< On the host.
  std::string target;   ///< Inside.
  sys::FileKind kind = sys::FileKind::kAbsent;
};

struct ProtectedFiles {
  std::vector<ProtectedFile> present;
  std::vector<ProtectedFile> absent;      ///< Nothing is there to mount on, so the guest can make them.
  std::vector<ProtectedFile> links;       ///< A link, there or on the way: not to be mounted on, so it can be replaced.
  std::vector<ProtectedFile> unsearched;  ///< Directories that hold too much, or can't be read, to look for a pattern.
};

/// Of one writable mount. Names that lie in another mount of the policy are that one's.
ProtectedFiles FindProtected(const Policy& policy, const Mount& mount);

}  // namespace belljar::plan
