// cli/interrupt.h: Ctrl-C and friends end what runs, and then us with a result.
#pragma once

#include <belljar/run.h>

namespace belljar::cli {

/// SIGINT, SIGTERM, SIGHUP and SIGQUIT cancel the token, unless they are ignored (nohup means it).
void CatchSignals(const CancelToken& token);
/// They do what they did before: there is nothing left to cancel.
void ReleaseSignals();

}  // namespace belljar::cli
