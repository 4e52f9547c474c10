#include "launch/orphans.h"

#include "jail/sweep.h"

namespace belljar::launch {

void Orphans::Adopt() {
  if (!sys::IsAlone()) return;
  before_ = sys::AdoptOrphans(sys::Reaper::kSelf);
  adopts_ = true;
}

Orphans::~Orphans() {
  if (!adopts_) return;
  (void)jail::KillChildren(jail::Kin::kChildren);
  (void)sys::AdoptOrphans(before_);
}

}  // namespace belljar::launch
