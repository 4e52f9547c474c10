#include "prove/outcome.h"

#include <charconv>
#include <cstring>

#include <fmt/format.h>

namespace belljar::prove {
namespace {

Outcome ReadLine(std::string_view line) {
  Outcome outcome;
  if (line.starts_with("worked ")) {
    outcome.kind = Outcome::Kind::kWorked;
  } else if (line.starts_with("refused ")) {
    outcome.kind = Outcome::Kind::kRefused;
  } else if (line.starts_with("unable ")) {
    outcome.kind = Outcome::Kind::kUnable;
  } else {
    return outcome;
  }
  line.remove_prefix(line.find(' ') + 1);
  if (outcome.kind == Outcome::Kind::kRefused) {
    const auto [end, failed] = std::from_chars(line.data(), line.data() + line.size(), outcome.error);
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    if (line.starts_with(' ')) line.remove_prefix(1);
  }
  outcome.detail = line;
  return outcome;
}

}  // namespace

std::string Outcome::Text() const {
  switch (kind) {
    case Kind::kSilent: return "ended without a word";
    case Kind::kRefused: return error == 0 ? detail : fmt::format("{}: {}", detail, std::strerror(error));
    default: return detail;
  }
}

Outcome ReadOutcome(std::string_view output) {
  Outcome last;
  while (!output.empty()) {
    const std::size_t at = output.find('\n');
    // A line that was cut off by the end of the run is no statement.
    if (at == std::string_view::npos) break;
    if (Outcome read = ReadLine(output.substr(0, at)); read.kind != Outcome::Kind::kSilent) last = std::move(read);
    output.remove_prefix(at + 1);
  }
  return last;
}

}  // namespace belljar::prove
