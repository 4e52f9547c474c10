// launch/janitor.h: a tiny process that removes a run's cgroups and directory when its owner was killed before it
// could.
#pragma once

#include <sys/types.h>

#include <belljar/error.h>

#include "base/unique_fd.h"
#include "jail/sweep.h"

namespace belljar::launch {

class Janitor {
 public:
  Janitor() = default;
  /// Must come before the first thing that it shall clean up is made.
  static Expected<Janitor> Start(const jail::Leftovers& leftovers);
  Janitor(Janitor&& other) noexcept : lifeline_(std::move(other.lifeline_)), pid_(std::exchange(other.pid_, -1)) {}
  Janitor& operator=(Janitor&& other) noexcept {
    lifeline_ = std::move(other.lifeline_);
    std::swap(pid_, other.pid_);
    return *this;
  }
  /// Its owner has cleaned up; without this the destructor leaves the work to it.
  void Dismiss();
  ~Janitor();

 private:
  base::UniqueFd lifeline_;
  pid_t pid_ = -1;
};

}  // namespace belljar::launch
