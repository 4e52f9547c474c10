// backend/options.h: what the options of one run say about its policy and its descriptors.
#pragma once

#include <optional>

#include <belljar/error.h>
#include <belljar/policy.h>
#include <belljar/run.h>

#include "launch/connection.h"
#include "plan/compile.h"

namespace belljar::backend {

Expected<void> CheckPolicy(const Policy& policy);
Expected<void> CheckDescriptors(const RunOptions& options);

/// The policy for this run; kept in `own` where it differs. An Error where the options make it wrong.
Expected<const Policy*> ForRun(const Policy& policy, const RunOptions& options, std::optional<Policy>& own);

/// Whose view `options` has to outlive.
launch::Attached Attach(const RunOptions& options);
plan::Streams StreamsOf(const RunOptions& options);

}  // namespace belljar::backend
