// launcher/serve.h: the launcher: one thread, no heap, makes every sandbox of an engine.
//
// Why a process of its own: init is a copy of whoever clones it. A copy of a large program costs milliseconds, holds
// that program's memory and secrets beside a hostile guest, and inherits locks that other threads held. The launcher is
// small and knows nothing.
#pragma once

#include "jail/context.h"

namespace belljar::launcher {

/// Serves requests until the engine is gone; ends all sandboxes and removes what they left. Never returns.
/// `arguments` are the launcher's own, which no guest shall see in its init.
[[noreturn]] void Serve(jail::CallerStrings arguments);

}  // namespace belljar::launcher
