// jail/run_child.h: the child side of a launch: executes a plan and decides nothing.
//
// Called in a fresh clone of the parent, with all signals blocked. Never returns, never allocates, never unwinds.
// Kernel minimum 5.15: clone3, close_range, openat2, mount_setattr, pidfd are taken for granted.
#pragma once

#include "jail/context.h"

namespace belljar::jail {

[[noreturn]] void RunChild(const plan::LaunchPlan& plan, const int* fds, int fd_count, CallerStrings caller);

/// The steps from number `first` on, and then init's work.
[[noreturn]] void RunSteps(Context& context, std::uint32_t first);

/// Executes the program of the step, which makes the walls and starts belljar-launcher in them; -1 with errno.
int Become(Context& context, const plan::Step& step);
/// The descriptor of the plan where a program was started so; else -1.
int InsideNumber(int argc, char** argv);
/// Goes on with the plan where Become has left it, as pid 1 of what that program made.
[[noreturn]] void RunInside(int plan_fd, CallerStrings arguments);

}  // namespace belljar::jail
