#include "cli/trace_table.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/printable.h"

namespace belljar::cli {
namespace {

using base::Printable;

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
