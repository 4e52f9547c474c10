#include "cli/trace_table.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/json_writer.h"

namespace belljar::cli {
namespace {

constexpr std::size_t kWidest = 60;
constexpr std::size_t kMissingShown = 4;

struct Row {
  std::string operation;
  std::string target;
  std::string what;
  const Denial* denial = nullptr;
};

bool IsTraced(const Denial& denial) {
  return denial.kind == "file" || denial.kind == "network" || denial.kind == "syscall";
}

bool WasTraced(const Result& result) {
  return std::ranges::any_of(result.receipt.guards, [](const GuardReceipt& line) { return line.guard == "trace"; });
}

// C1 controls are two bytes in UTF-8, and terminals obey them as they do an escape.
bool IsControl(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (first < 0x20 || first == 0x7f) return true;
  if (character.size() == 2 && first == 0xc2) return static_cast<unsigned char>(character[1]) < 0xa0;
  // Marks that turn the direction of text around: a name would read as another one.
  return character.size() == 3 && first == 0xe2 && static_cast<unsigned char>(character[1]) == 0x80 &&
         (static_cast<unsigned char>(character[2]) & 0xf0) == 0xa0;
}

std::string Shortened(const std::string& text) {
  if (text.size() <= kWidest * 2) return text;
  return text.substr(0, kWidest) + "…" + text.substr(text.size() - kWidest);
}

std::vector<Row> Rows(const Result& result) {
  std::vector<Row> rows;
  for (const Denial& denial : result.denials) {
    if (!IsTraced(denial) || denial.operation == "more") continue;
    const auto same = [&](const Row& row) {
      if (!denial.grant.empty()) return row.denial->grant == denial.grant;
      return row.denial->target == denial.target && row.denial->rule == denial.rule;
    };
    if (const auto found = std::ranges::find_if(rows, same); found != rows.end()) {
      const bool known = found->operation.find(denial.operation) != std::string::npos;
      if (!known && found->operation.size() < 16) found->operation += "," + denial.operation;
      continue;
    }
    std::string what = denial.rule;
    if (!denial.grant.empty()) what += fmt::format("; allow it with: {}", denial.grant);
    rows.push_back({denial.operation, Shortened(Printable(denial.target)), Printable(what), &denial});
  }
  return rows;
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = base::Utf8Length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(1, length));
    if (length == 0 || IsControl(character)) {
      for (const char c : character) result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      result += character;
    }
    text.remove_prefix(character.size());
  }
  return result;
}

std::string TraceTable(const Result& result, std::size_t rows) {
  if (!WasTraced(result)) return {};
  std::vector<Row> all = Rows(result);
  if (all.empty()) return {};
  // Names that are nowhere are mostly searches: a few are enough.
  const auto telling = static_cast<std::size_t>(
      std::ranges::count_if(all, [](const Row& row) { return !row.denial->rule.starts_with("missing"); }));
  const std::size_t shown = std::min({rows, all.size(), telling + kMissingShown});
  std::uint64_t hidden = all.size() - shown;
  for (const Denial& denial : result.denials) {
    if (IsTraced(denial) && denial.operation == "more") hidden += denial.count;
  }
  std::size_t operation = 0;
  std::size_t target = 0;
  for (std::size_t i = 0; i < shown; ++i) {
    operation = std::max(operation, all[i].operation.size());
    target = std::max(target, std::min(kWidest, all[i].target.size()));
  }
  std::string text = "belljar: what was refused or missing, the most telling first\n";
  for (std::size_t i = 0; i < shown; ++i) {
    text += fmt::format("  {:<{}}  {:<{}}  {}\n", all[i].operation, operation, all[i].target, target, all[i].what);
  }
  if (hidden > 0) text += fmt::format("  and {} more; --json has them all\n", hidden);
  return text;
}

}  // namespace belljar::cli
