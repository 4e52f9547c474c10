// prove/catalog.h: the cases of the containment corpus, as the program belljar-corpus lists them.
//
//   auto catalog = Catalog::Load();
//   for (const Case& c : catalog->Matching({"C", "fork"})) …
//
// belljar-corpus stands beside this program (build tree) or in ../libexec/belljar (installed). Values; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <belljar/error.h>

namespace belljar::prove {

/// Bits of `enum trait` in tests/containment/corpus/attack.h.
enum Trait : unsigned {
  kEndedByGuard = 1U << 0,     ///< Being killed before it says anything is containment.
  kNeedsQuiet = 1U << 1,       ///< Runs alone.
  kLeavesProcesses = 1U << 2,  ///< Judged by what still lives when the run is over.
  kFloodsOutput = 1U << 3,     ///< Judged by how much came out.
  kNeedsMount = 1U << 5,       ///< A directory of the stage is mounted read-only.
  kSeenLate = 1U << 6,         ///< No short deadline, no limit of CPU time: its guard only looks now and then.
};

/// A guard of which a case says that it alone holds the attack.
struct Holder {
  std::string guard;
  bool only_in_full = false;  ///< No promise where the receipt calls it partial.
};

struct Case {
  std::string id;
  std::string name;
  std::string tries;
  unsigned traits = 0;
  std::vector<Holder> guards;  ///< The outermost first.

  bool Has(Trait trait) const { return (traits & trait) != 0; }
};

struct Catalog {
  std::string program;  ///< belljar-corpus
  std::vector<Case> cases;

  static Expected<Catalog> Load();
  /// Cases whose id or part letter is a filter, or whose name holds one; all without filters. A filter that fits
  /// nothing is an error, since a proof of nothing would look like a success.
  Expected<std::vector<Case>> Matching(const std::vector<std::string>& filters) const;
};

}  // namespace belljar::prove
