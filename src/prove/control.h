// prove/control.h: runs a case outside, to see whether it works at all on this host.
//
// In a throw-away child behind a fence (tests/containment/corpus/fence.c), so that nothing of the host is hurt when it
// does. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include <belljar/error.h>
#include <belljar/policy.h>

#include "prove/catalog.h"
#include "prove/outcome.h"

namespace belljar::prove {

/// The sizes that attacks on limits are measured by. Small, so that a control can go beyond them without harm; what is
/// proved about them holds for larger ones too, since the mechanism is the same.
struct Sizes {
  std::uint64_t memory = 64ULL << 20;
  std::uint64_t processes = 24;
  std::uint64_t disk = 16ULL << 20;
  std::uint64_t files = 1000;
  std::uint64_t open_files = 64;
  std::uint64_t output = 64ULL << 10;
  std::uint64_t cpu_ms = 500;
  std::uint64_t deadline_ms = 1000;

  /// The policy's own limits where those are smaller.
  static Sizes For(const Policy& policy);
  /// The policy with these limits. CPU time and the short deadline are only for cases that a guard may end.
  Policy Apply(Policy policy, const Case& c) const;
  /// As key=value for the attack.
  std::vector<std::string> Arguments() const;
};

struct ControlResult {
  bool worked = false;
  std::string text;  ///< What it got, or why it got nothing.
};

/// `cancel` is a descriptor that becomes readable to end it early.
Expected<ControlResult> RunControl(const Catalog& catalog, const Case& c, const std::string& secret, const Sizes& sizes,
                                   int cancel);

}  // namespace belljar::prove
