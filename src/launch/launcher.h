// launch/launcher.h: the engine's side of its launcher, a small process that makes sandboxes (launcher/serve.h).
//
// Started with the first sandbox, started again when it died, ended with this object. May be used by many threads.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include <belljar/error.h>

#include "base/unique_fd.h"

namespace belljar::launch {

class Launcher {
 public:
  class Process;

  /// One sandbox that the launcher makes. To close it is to end it: launcher and all.
  struct Handle {
    std::shared_ptr<Process> process;
    base::UniqueFd socket;
    std::uint32_t serial = 0;
  };
  struct Started {
    pid_t pid = -1;
    base::UniqueFd pidfd;
  };
  struct Ending {
    int status = 0;
    rusage usage{};
  };

  /// Before anything of the sandbox is made on the host: should this process be killed, the launcher removes it.
  /// `directory` may be empty.
  Expected<Handle> Expect(const std::string& directory, std::span<const std::string> cgroups);
  /// Makes init, which executes the plan. `slots` are descriptors of this process, or -1.
  static Expected<Started> Start(const Handle& handle, std::span<const std::uint64_t> plan, std::span<const int> slots,
                                 int cgroup_fd);
  /// Blocks until init is gone. Where the launcher died first, init was killed with it.
  static Ending AwaitEnd(const Handle& handle);

 private:
  Expected<std::shared_ptr<Process>> Current();

  std::mutex mutex_;
  std::shared_ptr<Process> process_;  ///< Guarded by mutex_.
};

}  // namespace belljar::launch
