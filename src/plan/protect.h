// plan/protect.h: what stays read-only inside the writable mounts of a policy (files.protect), as it is on the host
// now.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <belljar/policy.h>

#include "plan/compiled_plan.h"
#include "sys/files.h"

namespace belljar::plan {

struct ProtectedFile {
  std::string name;     ///< As seen from the mount.
  std::string pattern;  ///< The entry of files.protect that names it.
  std::string source;   ///< On the host.
  std::string target;   ///< Inside.
  sys::FileStatus status;
};

struct ProtectedFiles {
  std::vector<ProtectedFile> present;
  std::vector<ProtectedFile> links;       ///< A link, there or on the way: not to be mounted on, so it can be replaced.
  std::vector<ProtectedFile> mixed;       ///< What git takes hooks from, with more in it than can be kept.
  std::vector<ProtectedFile> unsearched;  ///< Directories that hold too much, or can't be read, to look for a pattern.
};

/// A writable mount, where it is a directory, and others of the policy where this one shows them once more: their names
/// are kept there too. Nothing for any other mount.
std::vector<Mount> ShownBy(const Mount& mount, const Policy& policy);

/// Of one of them. Names that lie in another mount of the policy are that one's. `home` is the caller's, for which ~
/// stands in configurations.
ProtectedFiles FindProtected(const Policy& policy, const Mount& mount, const std::string& home);

/// Whether a protected file, or one in a protected directory, has another name by which a guest may reach it.
enum class OtherNames : std::uint8_t {
  kNone,
  kSome,
  kUnsearched,  ///< It holds too many files to look at.
};
OtherNames FindOtherNames(const ProtectedFile& file);

/// What of all that is protected in the policy's writable mounts is there now, whether or not it can be; sorted.
std::vector<Guarded> FindGuarded(const Policy& policy, const std::string& home);

/// Paths inside of what should be guarded and is not, or is another file than the plan has guarded; and `uncovered`,
/// whose cover was taken away: who renames another file to it may not be done yet. Very many are told by the
/// directories that they are in.
std::vector<std::string> FindAppeared(const Policy& policy, const CompiledPlan& plan, std::string_view uncovered = {});

}  // namespace belljar::plan
