#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "seccomp/write.h"

namespace belljar::seccomp {
namespace {

constexpr std::string_view kIntroduction = R"(# System calls at level kernel

This page is generated from `profiles/kernel.seccomp` and `profiles/narrowing.seccomp` by `belljar-seccompc --markdown`.
Change those files, not this one; a test compares them.

- A call that is not on this page, because no program could know it when Belljar was built, gets ENOSYS.
- A call of another architecture (`int 0x80` on x86_64) or with an x32 number ends the process with SIGSYS.
- Lines of one call are tried from top to bottom; the first whose condition holds decides.
- A *reported* denial shows in the run's denials; other denials are answered by the kernel and not counted.
- `argN:32` means that the low 32 bits of the argument are compared, as the kernel itself does for an `int`.
)";

std::string Answer(const Action& action) {
  if (action.verb == Verb::kAllow) return "allowed";
  if (action.verb == Verb::kKill) return "ends the process";
  if (action.error == 0) return "not done, told that it was";
  return fmt::format("{}{}", ErrnoName(action.error), action.notice == Notice::kReported ? ", reported" : "");
}

// A bar would end the table's cell.
std::string Cell(std::string_view text) {
  std::string cell;
  for (const char c : text) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return cell;
}

void WriteGroups(std::string& out, const RuleFile& file) {
  std::string group;
  for (const Rule& rule : file.rules) {
    if (rule.group != group) {
      group = rule.group;
      fmt::format_to(std::back_inserter(out), "\n### {}\n\n| call | answer | when | why |\n|---|---|---|---|\n", group);
    }
    fmt::format_to(std::back_inserter(out), "| {} | {} | {} | {} |\n", rule.name, Answer(rule.action),
                   rule.condition_text.empty() ? "" : fmt::format("`{}`", Cell(rule.condition_text)),
                   Cell(rule.reason));
  }
}

std::size_t CountCalls(const RuleFile& file, bool (*wanted)(const Rule&)) {
  std::set<std::string> names;
  for (const Rule& rule : file.rules) {
    if (wanted(rule)) names.insert(rule.name);
  }
  return names.size();
}

}  // namespace

std::string WriteMarkdown(const RuleFile& kernel, const RuleFile& narrowing) {
  std::string out(kIntroduction);
  const auto any = [](const Rule&) { return true; };
  const auto conditional = [](const Rule& rule) { return !rule.conditions.empty(); };
  const auto allowed = [](const Rule& rule) { return rule.action.verb == Verb::kAllow; };
  const std::size_t all = CountCalls(kernel, any);
  fmt::format_to(std::back_inserter(out),
                 "\nOf {} calls, {} are allowed (of all the calls, {} depend on their arguments) and {} are always "
                 "denied.\n\n## What is allowed and denied\n",
                 all, CountCalls(kernel, allowed), CountCalls(kernel, conditional), all - CountCalls(kernel, allowed));
  WriteGroups(out, kernel);
  out +=
      "\n## What a run may lose beyond that\n\nThe name before the colon is the reason for which a plan asks for it.\n";
  WriteGroups(out, narrowing);
  return out;
}

}  // namespace belljar::seccomp
