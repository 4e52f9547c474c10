// prove/stage.h: what an attack finds on the host to reach for, and whether it reached it.
//
//   auto stage = Stage::Build(corpus, secret, Stage::Side::kInside);
//   run(stage->arguments());
//   if (auto damage = stage->Damage(); !damage.empty()) …       // "touched the tcp listener"
//
// A file and a socket in a directory of their own, listeners, shared memory, a message queue, a process that holds the
// secret, and a descriptor left open across exec. A child (`belljar-corpus stage`) keeps them; when this process dies,
// however, the child removes all of it. One thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <belljar/error.h>

#include "base/unique_fd.h"
#include "prove/spawn.h"

namespace belljar::prove {

class Stage {
 public:
  enum class Side : std::uint8_t { kOutside, kInside };

  static Expected<Stage> Build(const std::string& corpus, const std::string& secret, Side side);
  Stage(Stage&&) = default;
  Stage& operator=(Stage&&) = delete;
  ~Stage();

  /// key=value for the attack; see struct stage in tests/containment/corpus/attack.h.
  const std::vector<std::string>& arguments() const { return arguments_; }
  /// The directory of cases with kNeedsMount, and where the guest sees it.
  std::string shared() const { return directory_ + "/shared"; }
  static constexpr char kSharedInside[] = "/shared";
  /// What is not as it was made; empty when nothing was touched.
  std::string Damage();

 private:
  explicit Stage(Child keeper) : keeper_(std::move(keeper)) {}
  std::string ReadLine();

  Child keeper_;
  std::string directory_;
  base::UniqueFd left_open_;  ///< Not close-on-exec, as by a careless caller.
  std::vector<std::string> arguments_;
};

/// Letters and digits that stand nowhere else on this host.
std::string MakeSecret();

}  // namespace belljar::prove
