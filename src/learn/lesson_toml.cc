// A learned policy as TOML that explains itself.
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "base/json_writer.h"
#include "learn/learn.h"
#include "policy/print.h"
#include "trace/grants.h"

namespace belljar::learn {
namespace {

// Names in comments come from the example: none may end the comment and start a key.
std::string Commented(std::string_view text) {
  std::string line;
  for (const char c : text) line += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  if (base::IsUtf8(line)) return line;
  for (char& c : line) c = static_cast<unsigned char>(c) < 0x80 ? c : '?';
  return line;
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string MountLines(const Lesson& lesson) {
  std::string text = "mounts = [\n";
  for (const Grant& grant : lesson.grants) {
    const std::string fragment = trace::FragmentOf(grant.mount);
    if (fragment.empty()) {
      text += fmt::format("  # left out, its name has bytes that a policy can't hold: {}\n", Commented(grant.why));
      continue;
    }
    constexpr std::string_view kBegin = "files.mounts = [";
    text += fmt::format("  # {}{}\n  {},\n", Commented(grant.why), grant.durable ? "; what it writes there stays" : "",
                        std::string_view(fragment).substr(kBegin.size(), fragment.size() - kBegin.size() - 1));
  }
  return text + "]\n";
}

void AddHead(std::string& text, const Lesson& lesson, const std::vector<std::string>& argv) {
  text += fmt::format("# Learned from: {}\n", Commented(fmt::format("{}", fmt::join(argv, " "))));
  switch (lesson.standing) {
    case Standing::kMinimal:
      text += fmt::format(
          "# The example passes under it ({} trials). Without any one of the grants it fails, or what it writes is "
          "lost.\n",
          lesson.trials);
      break;
    case Standing::kFails: text += "# NOT ENOUGH: the example does not pass under it.\n"; break;
    case Standing::kUnverified:
    case Standing::kAuditFailed: text += "# Not verified: nobody tried whether the example passes under it.\n"; break;
  }
  for (const std::string& note : lesson.notes) text += fmt::format("# Note: {}\n", Commented(note));
  text += "# Environment variables that it needs can't be seen from outside: add them to environment.pass.\n";
  for (const std::string& one : lesson.withheld) {
    text += fmt::format("# NOT GRANTED, decide yourself: {}\n", Commented(one));
  }
  for (const std::string& one : lesson.addresses) {
    text += fmt::format("# network: {} (there is no network inside)\n", Commented(one));
  }
}

}  // namespace

std::string LessonToml(const Lesson& lesson, const std::vector<std::string>& argv) {
  Policy bare = lesson.policy;
  const std::vector<Mount> given(bare.files.mounts.begin(),
                                 bare.files.mounts.end() - static_cast<std::ptrdiff_t>(lesson.grants.size()));
  bare.files.mounts = given;
  Policy profile = Policy::Profile(bare.profile);
  const std::string usual = policy::ToToml(profile, policy::Comments::kNone);
  const std::vector<std::string_view> known = Lines(usual);
  const std::set<std::string_view> defaults(known.begin(), known.end());

  std::string text;
  AddHead(text, lesson, argv);
  const std::string all = policy::ToToml(bare, policy::Comments::kNone);
  std::string_view section;
  for (const std::string_view line : Lines(all)) {
    if (line.starts_with('[')) section = line;
    const bool mounts = line == "mounts = []" && !lesson.grants.empty();
    const bool head = line.starts_with("profile =") || line.starts_with("level =");
    if (!mounts && !head && (line.empty() || line.starts_with('[') || line.starts_with('#') || defaults.contains(line)))
      continue;
    if (!section.empty()) {
      text += fmt::format("\n{}\n", section);
      section = {};
    }
    text += mounts ? MountLines(lesson) : std::string(line) + "\n";
  }
  return text;
}

}  // namespace belljar::learn
