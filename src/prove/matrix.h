// prove/matrix.h: the corpus once for every guard left out: which cases does that guard alone hold? Test builds only.
//
//   Expected<std::string> page = GuardMatrix(prover, cases, progress);      // Markdown, docs/guards.md
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "prove/prover.h"

namespace belljar::prove {

Expected<std::string> GuardMatrix(Prover& prover, const std::vector<Case>& cases,
                                  const std::function<void(const std::string&)>& progress);

}  // namespace belljar::prove
