// jail/loopback.h: the one interface that a sandbox has by itself.
#pragma once

namespace belljar::jail {

/// Brings the loopback of this network namespace up; 0, or -1 with errno.
int BringLoopbackUp();

}  // namespace belljar::jail
