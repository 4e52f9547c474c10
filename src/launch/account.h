// launch/account.h: what a run used, from all who have counted.
#pragma once

#include <belljar/result.h>

#include "launch/limit_watch.h"
#include "launch/sandbox.h"
#include "launch/verdict.h"
#include "sys/cgroup.h"

namespace belljar::launch {

/// Init's report counts, or its own end where there is none; the cgroup, and whoever looked at the guest, may know of
/// more. When the watch has stopped.
Usage Account(const Observed& observed, const Sandbox::Ending& ending, const sys::CgroupUsage& counted,
              const LimitWatch& watch);

}  // namespace belljar::launch
