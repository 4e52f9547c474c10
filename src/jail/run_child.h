// jail/run_child.h: the child side of a launch: executes a plan and decides nothing.
//
// Called in a fresh clone of the parent, with all signals blocked. Never returns, never allocates, never unwinds.
// Kernel minimum 5.15: clone3, close_range, openat2, mount_setattr, pidfd are taken for granted.
#pragma once

#include "jail/context.h"

namespace belljar::jail {

[[noreturn]] void RunChild(const plan::LaunchPlan& plan, const int* fds, int fd_count, CallerStrings caller);

}  // namespace belljar::jail
