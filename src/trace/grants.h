// trace/grants.h: from what a traced run was refused to denials, each with the smallest grant that would allow it.
//
// A grant says what would allow something, not that it should be: an untrusted program may ask for anything. So there
// is none for places that hold secrets, and none for the system's own files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <belljar/caller.h>
#include <belljar/policy.h>
#include <belljar/result.h>

#include "plan/protect.h"
#include "trace/trace_log.h"

namespace belljar::trace {

/// What is known about the run whose accesses are looked at.
struct GrantScene {
  const Policy& policy;
  std::string directory;        ///< The caller's, where relative paths of the host start.
  std::string home;             ///< The caller's.
  bool can_move_mounts = true;  ///< False where a mount must have its source as its target (no namespaces).
  bool own_network = true;
  std::vector<plan::ProtectedFile> kept;  ///< What is read-only in writable mounts, where something was refused so.
};

/// The mount that would allow an access; nothing where none would, or none should be proposed.
std::optional<Mount> FindGrant(const Access& access, const GrantScene& scene);

/// A mount as a flag of `belljar run`, quoted for a shell; empty where it can't be written as one.
std::string FlagOf(const Mount& mount);
/// The same as a piece of a policy.
std::string FragmentOf(const Mount& mount);

/// Most telling first. Searches that ended well are left out.
std::vector<Denial> ExplainAccesses(const std::vector<Access>& accesses, const GrantScene& scene);

/// Adds them to the run's result. `exec_failed`: why its program could not be executed, where that is so.
void AddDenials(Record record, std::optional<int> exec_failed, const Policy& policy,
                const std::vector<std::string>& argv, const Caller& caller, Result& result);

}  // namespace belljar::trace
