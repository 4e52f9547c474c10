#include "prove/matrix.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "plan/without.h"

namespace belljar::prove {
namespace {

struct Row {
  std::string guard;
  std::string what;
  std::vector<std::string> out;      ///< Cases that this guard alone held.
  std::vector<std::string> surface;  ///< The same, of those that only reach for kernel code.
  std::string refusal;               ///< Set: nothing runs without it.
};

std::string Joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : " ") + part;
  return text;
}

bool Worked(const CaseProof& report) {
  return report.finding == Finding::kEscaped || report.finding == Finding::kNotPromised;
}

// A case of part B that names the filter alone is about reaching a piece of the kernel: it gets nothing of the host by
// itself.
bool IsSurface(const Case& c) {
  return c.id.starts_with('B') && c.guards.size() == 1 && c.guards.front().guard == "seccomp";
}

Row RowOf(const plan::RemovableGuard& guard, const Proof& proof) {
  Row row{.guard = std::string(guard.name), .what = std::string(guard.what)};
  for (const CaseProof& report : proof.cases) {
    if (Worked(report)) (IsSurface(report.tried) ? row.surface : row.out).push_back(report.tried.id);
  }
  const auto errors = static_cast<std::size_t>(proof.Count(Finding::kError));
  if (errors == proof.cases.size() && !proof.cases.empty()) row.refusal = proof.cases.front().inside;
  return row;
}

std::string Page(const std::vector<Row>& rows, const Proof& whole) {
  std::string text = fmt::format(
      "# Which guard holds what\n\n"
      "Made by `belljar prove --matrix` of a test build (`./test` builds one): the corpus runs once with every guard "
      "and "
      "then once for\neach guard left out of the plan. A case stands behind a guard if it got out when that guard "
      "alone "
      "was missing: nothing else held\nit. All other cases are held by two guards or more.\n\n"
      "*Surface* cases only reach a piece of the kernel (a system call, a kind of socket) and get nothing of the host "
      "by "
      "it. Keeping a\nguest away from kernel code is what seccomp alone is for, so its row is long there by "
      "nature.\n\n"
      "A guard with 0 is the second wall everywhere: whatever it stops in this corpus, another guard stops as well.\n\n"
      "This run: {}, form {}, as {}; {} cases, {} contained with all guards, {} vacuous on this host.\n\n"
      "| guard | left out means | got out | which | surface cases |\n|---|---|---|---|---|\n",
      whole.receipt.host, whole.receipt.form, ::geteuid() == 0 ? "root" : "an unprivileged user", whole.cases.size(),
      whole.Count(Finding::kContained), whole.Count(Finding::kVacuous));
  std::map<std::string, std::vector<std::string>> holders;
  for (const Row& row : rows) {
    const std::string which = row.refusal.empty() ? Joined(row.out) : "nothing runs without it: " + row.refusal;
    text +=
        fmt::format("| {} | {} | {} | {} | {} |\n", row.guard, row.what, row.out.size(), which, Joined(row.surface));
    for (const std::string& id : row.out) holders[id].push_back(row.guard);
  }
  text += "\n## The cases that one guard alone holds\n\n| case | tries to | held alone by |\n|---|---|---|\n";
  for (const CaseProof& report : whole.cases) {
    const auto found = holders.find(report.tried.id);
    if (found == holders.end()) continue;
    std::string guards;
    for (const std::string& guard : found->second) guards += (guards.empty() ? "" : ", ") + guard;
    text += fmt::format("| {} | {} | {} |\n", report.tried.id, report.tried.tries, guards);
  }
  return text;
}

}  // namespace

Expected<std::string> GuardMatrix(Prover& prover, const std::vector<Case>& cases,
                                  const std::function<void(const std::string&)>& progress) {
  const auto quiet = [](const Progress&) {};
  progress("all guards");
  const auto whole = prover.Run(cases, quiet);
  if (!whole) return std::unexpected(whole.error());
  std::vector<Row> rows;
  for (const plan::RemovableGuard& guard : plan::RemovableGuards()) {
    if (whole->cancelled) break;
    progress(fmt::format("without {}", guard.name));
    if (auto known = plan::LeaveOut(guard.name); !known) return std::unexpected(known.error());
    const auto proof = prover.Run(cases, quiet);
    if (auto whole_again = plan::LeaveOut(""); !whole_again) return std::unexpected(whole_again.error());
    if (!proof) {
      // Refused as a whole: fail closed is an answer too.
      rows.push_back({std::string(guard.name), std::string(guard.what), {}, {}, proof.error().Text()});
      continue;
    }
    if (proof->cancelled) {
      return std::unexpected(Error{.step = "prove --matrix", .message = "interrupted", .hint = "start it again"});
    }
    Row row = RowOf(guard, *proof);
    // What gets out with all guards, because the form does not promise it, is no loss of this one.
    for (auto* ids : {&row.out, &row.surface}) {
      std::erase_if(*ids, [&](const std::string& id) {
        return std::ranges::any_of(whole->cases, [&](const CaseProof& r) { return r.tried.id == id && Worked(r); });
      });
    }
    rows.push_back(std::move(row));
  }
  return Page(rows, *whole);
}

}  // namespace belljar::prove
