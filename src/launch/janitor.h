// launch/janitor.h: a tiny process that removes a run's cgroups and directory when its owner was killed before it
// could. While there, it
// makes the network namespace, which takes as long as all other namespaces together.
#pragma once

#include <sys/types.h>

#include <belljar/error.h>

#include "base/unique_fd.h"
#include "jail/sweep.h"

namespace belljar::launch {

/// Whether the janitor also makes the sandbox's network namespace, on another CPU than the rest of the start.
enum class Network : unsigned char { kLeave, kMake };

class Janitor {
 public:
  Janitor() = default;
  /// Must come before the first thing that it shall clean up is made.
  static Expected<Janitor> Start(const jail::Leftovers& leftovers, Network network);
  Janitor(Janitor&& other) noexcept
      : lifeline_(std::move(other.lifeline_)),
        network_ready_(std::move(other.network_ready_)),
        pidfd_(std::move(other.pidfd_)),
        pid_(std::exchange(other.pid_, -1)) {}
  Janitor& operator=(Janitor&& other) noexcept {
    lifeline_ = std::move(other.lifeline_);
    network_ready_ = std::move(other.network_ready_);
    pidfd_ = std::move(other.pidfd_);
    std::swap(pid_, other.pid_);
    return *this;
  }
  /// The run is over: removes what is still left and ends. The destructor waits for that.
  void Dismiss() { lifeline_.Reset(); }
  /// The same, without a wait: it may take long.
  void Leave();
  ~Janitor();

  int network_ready() const { return network_ready_.get(); }  ///< For init, which reads it; -1 for Network::kLeave.
  int pidfd() const { return pidfd_.get(); }

 private:
  base::UniqueFd lifeline_;
  base::UniqueFd network_ready_;
  base::UniqueFd pidfd_;
  pid_t pid_ = -1;
};

}  // namespace belljar::launch
