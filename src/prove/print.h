// prove/print.h: a proof as a table for people and as JSON for programs.
#pragma once

#include <string>

#include "prove/prover.h"

namespace belljar::prove {

enum class Paint : std::uint8_t { kPlain, kColors };

/// One line a case, then the totals and what is behind those that are not contained. `width` is the terminal's.
std::string Table(const Proof& proof, Paint paint, std::size_t width);
/// One object; docs/prove.md describes it.
std::string ToJson(const Proof& proof);
/// The cases without running them.
std::string List(const std::vector<Case>& cases);
std::string ListJson(const std::vector<Case>& cases);

}  // namespace belljar::prove
