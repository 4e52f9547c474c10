// plan/bwrap.h: the same plan with walls that bubblewrap makes. bwrap makes the namespaces and the root, told by an
// argument list, and starts our init in them, which executes the rest of the plan: limits, Landlock, filters, commands.
#pragma once

#include "plan/compile.h"

namespace belljar::plan {

/// For a Request with `bwrap`. What bwrap can't do is a refusal that names it.
///
/// As root bwrap runs as the guest's own host uid: it is never root, and neither are the namespaces that it makes.
std::expected<CompiledPlan, CompileError> CompileForBwrap(const Request& request);

}  // namespace belljar::plan
