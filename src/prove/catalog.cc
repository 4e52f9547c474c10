#include "prove/catalog.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

#include "prove/spawn.h"
#include "sys/files.h"

namespace belljar::prove {
namespace {

std::vector<std::string_view> Split(std::string_view text, char divider) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(divider);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::vector<Holder> ReadGuards(std::string_view text) {
  std::vector<Holder> guards;
  for (std::string_view part : Split(text, ',')) {
    while (part.starts_with(' ')) part.remove_prefix(1);
    const bool only_in_full = part.ends_with('?');
    if (only_in_full) part.remove_suffix(1);
    if (!part.empty()) guards.push_back({std::string(part), only_in_full});
  }
  return guards;
}

Expected<std::string> FindProgram() {
  const std::string self = sys::ReadLink("/proc/self/exe").value_or("");
  const std::string directory = self.substr(0, self.rfind('/'));
  const std::string beside = directory + "/belljar-corpus";
  const std::string installed = directory.substr(0, directory.rfind('/')) + "/libexec/belljar/belljar-corpus";
  for (const std::string& path : {beside, installed}) {
    if (sys::IsExecutable(path)) return path;
  }
  return std::unexpected(Error{.step = "find the attacks",
                               .message = "neither " + beside + " nor " + installed + " can be executed",
                               .hint = "install Belljar as a whole, or copy belljar-corpus beside belljar"});
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

bool Fits(const Case& c, std::string_view filter) {
  const std::string wanted = Lower(filter);
  const std::string id = Lower(c.id);
  if (wanted.size() == 1) return id.starts_with(wanted);
  if (id == wanted) return true;
  // "B26" also means its variants B26a, B26b …
  if (id.size() == wanted.size() + 1 && id.starts_with(wanted) && std::isalpha(id.back()) != 0) return true;
  return c.name.find(wanted) != std::string::npos;
}

}  // namespace

Expected<Catalog> Catalog::Load() {
  Catalog catalog;
  auto program = FindProgram();
  if (!program) return std::unexpected(program.error());
  catalog.program = *std::move(program);
  const auto listed = RunToEnd({catalog.program, "list"});
  if (!listed) return std::unexpected(listed.error());
  for (const std::string_view line : Split(listed->out, '\n')) {
    const auto fields = Split(line, '\t');
    if (fields.size() != 5) continue;
    Case c{.id = std::string(fields[0]),
           .name = std::string(fields[1]),
           .tries = std::string(fields[4]),
           .guards = ReadGuards(fields[3])};
    std::from_chars(fields[2].data(), fields[2].data() + fields[2].size(), c.traits);
    catalog.cases.push_back(std::move(c));
  }
  if (catalog.cases.empty()) {
    return std::unexpected(Error{.step = "list the attacks",
                                 .message = catalog.program + " names none",
                                 .hint = "it belongs to another version; install Belljar again"});
  }
  return catalog;
}

Expected<std::vector<Case>> Catalog::Matching(const std::vector<std::string>& filters) const {
  if (filters.empty()) return cases;
  for (const std::string& filter : filters) {
    if (std::ranges::any_of(cases, [&](const Case& c) { return Fits(c, filter); })) continue;
    return std::unexpected(Error{.step = "choose cases",
                                 .message = fmt::format("no case is called '{}'", filter),
                                 .hint = "'belljar prove --list' names them all"});
  }
  std::vector<Case> chosen;
  std::ranges::copy_if(cases, std::back_inserter(chosen), [&](const Case& c) {
    return std::ranges::any_of(filters, [&](const std::string& filter) { return Fits(c, filter); });
  });
  return chosen;
}

}  // namespace belljar::prove
