// launch/orphans.h: ends what a sandbox without a pid namespace leaves behind when its init is killed from outside.
//
// Init finds all that its guest detached, as their adoptive parent. Where init itself is killed, the next above it that
// adopts inherits them. That is this process if it may be: only one that has a single thread and no child of its own
// can tell the guest's processes from others, and must never kill a child of its host program.
#pragma once

#include <utility>

#include "sys/process.h"

namespace belljar::launch {

class Orphans {
 public:
  Orphans() = default;
  Orphans(Orphans&& other) noexcept : adopts_(std::exchange(other.adopts_, false)), before_(other.before_) {}
  Orphans& operator=(Orphans&&) = delete;
  /// Ends them. By then init and janitor have been waited for.
  ~Orphans();

  /// From now on, if this process may. Before it has any child of ours.
  void Adopt();

 private:
  bool adopts_ = false;
  sys::Reaper before_ = sys::Reaper::kOthers;
};

}  // namespace belljar::launch
