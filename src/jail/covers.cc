// Covers that the host can take away. A mount on a file or directory goes, in each mount namespace, when the host
// removes that file or renames another one over it, and goes along when the host renames the file itself: what it hid
// is then in sight, and what it kept can be written, or made anew.
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "jail/context.h"

namespace belljar::jail {
namespace {

// That a mount is gone the kernel tells at once; not that it is somewhere else now.
constexpr std::uint64_t kBetweenLooksNs = 1'000'000'000;

enum class State { kThere, kNothingToCover, kClosed, kGone };

State Look(const plan::LaunchPlan& plan, const plan::Step& step) {
  const bool mask = step.op == plan::Op::kMask || step.op == plan::Op::kCovered;
  const bool optional = mask && static_cast<plan::Cover>(step.value) == plan::Cover::kWhatFits;
  struct statx status = {};
  const int flags = AT_NO_AUTOMOUNT | (optional ? 0 : AT_SYMLINK_NOFOLLOW);
  if (statx(AT_FDCWD, plan::Text(plan, step.text), flags, 0, &status) != 0) {
    if (optional && errno == ENOENT) return State::kNothingToCover;
    return errno == EACCES ? State::kClosed : State::kGone;
  }
  return (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0 ? State::kThere : State::kGone;
}

struct Covers {
  unsigned hold = 0;
  int gone = -1;  ///< A step.
  int closed = -1;
};

Covers LookAtAll(const plan::LaunchPlan& plan) {
  Covers covers;
  for (std::uint32_t i = 0; i < plan.step_count; ++i) {
    const plan::Step& step = plan::Steps(plan)[i];
    if (step.covers == 0) continue;
    switch (Look(plan, step)) {
      case State::kThere:
      case State::kNothingToCover: ++covers.hold; break;
      case State::kClosed: covers.closed = static_cast<int>(i); break;
      case State::kGone: covers.gone = static_cast<int>(i); break;
    }
  }
  return covers;
}

}  // namespace

// SECURITY: opened before the first look: from then on no mount goes unseen.
int WatchCovers(Context& context) {
  context.mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
  if (context.mounts < 0) return -1;
  context.detail = 1;
  const Covers covers = LookAtAll(context.plan);
  context.covered = true;
  context.covers_due = 0;
  if (covers.gone < 0 && covers.closed < 0) return 0;
  errno = ESTALE;
  return -1;
}

// What was closed to an init without privileges from its first look on is closed to a guest, too. Of what is closed
// later it takes the worst for granted.
bool CoversHold(Context& context, plan::Report& report) {
  if (!context.covered) return true;
  const std::uint64_t now = NowNs();
  if (now < context.covers_due) return true;
  context.covers_due = now + kBetweenLooksNs;
  const Covers covers = LookAtAll(context.plan);
  if (covers.gone < 0 && covers.hold >= context.covers) {
    context.covers = covers.hold;
    return true;
  }
  report.kind = plan::ReportKind::kUncovered;
  report.step = covers.gone >= 0 ? covers.gone : covers.closed;
  return false;
}

}  // namespace belljar::jail
