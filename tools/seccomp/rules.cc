#include "seccomp/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "seccomp/constants.h"

namespace belljar::seccomp {
namespace {

using Words = std::vector<std::string_view>;

std::string_view Trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

// Splits at blanks; the signs of the grammar are words of their own even without blanks around them.
Words SplitWords(std::string_view text) {
  constexpr std::string_view kSigns = "{},&~|";
  Words words;
  for (std::size_t at = 0; at < text.size();) {
    if (std::isspace(static_cast<unsigned char>(text[at]))) {
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    if (kSigns.find(text[at]) == std::string_view::npos) {
      while (end < text.size() && !std::isspace(static_cast<unsigned char>(text[end])) &&
             kSigns.find(text[end]) == std::string_view::npos) {
        ++end;
      }
    }
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

Result<std::uint64_t> ParseNumber(std::string_view text) {
  std::uint64_t value = 0;
  const bool hex = text.starts_with("0x");
  const std::string_view digits = hex ? text.substr(2) : text;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, hex ? 16 : 10);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty()) {
    return std::unexpected(fmt::format("'{}' is not a number", text));
  }
  return value;
}

Result<std::uint64_t> ParseTerm(std::string_view word) {
  if (word.empty()) return std::unexpected("a value is missing");
  if (std::isdigit(static_cast<unsigned char>(word.front()))) return ParseNumber(word);
  if (const auto value = FindConstant(word)) return *value;
  return std::unexpected(fmt::format("'{}' is not a constant that tools/seccomp/constants.cc knows", word));
}

/// Reads the words of one entry from left to right.
class EntryParser {
 public:
  explicit EntryParser(Words words) : words_(std::move(words)) {}

  bool AtEnd() const { return at_ == words_.size(); }
  std::string_view Peek() const { return AtEnd() ? std::string_view() : words_[at_]; }
  std::string_view Take() { return AtEnd() ? std::string_view() : words_[at_++]; }
  bool TakeIf(std::string_view word) {
    if (Peek() != word) return false;
    ++at_;
    return true;
  }

  Result<Action> TakeAction();
  Result<Condition> TakeCondition();

 private:
  Result<std::uint64_t> TakeTerm();
  Result<std::uint64_t> TakeValue();
  Result<std::uint64_t> TakeMask(Width width);
  Result<std::vector<Range>> TakeSet();
  Result<Range> TakeRange();

  Words words_;
  std::size_t at_ = 0;
};

Result<Action> EntryParser::TakeAction() {
  const std::string_view verb = Take();
  if (verb == "allow") return Action{Verb::kAllow, 0, Notice::kQuiet};
  if (verb == "kill") return Action{Verb::kKill, 0, Notice::kQuiet};
  if (verb == "pretend") return Action{Verb::kDeny, 0, Notice::kQuiet};
  if (verb != "deny") {
    return std::unexpected(fmt::format("'{}' is not an action; use allow, deny ERRNO, pretend or kill", verb));
  }
  const std::string_view name = Take();
  const std::optional<int> error = FindErrno(name);
  if (!error) return std::unexpected(fmt::format("'{}' is not an errno that tools/seccomp/constants.cc knows", name));
  return Action{Verb::kDeny, *error, TakeIf("quiet") ? Notice::kQuiet : Notice::kReported};
}

Result<std::uint64_t> EntryParser::TakeTerm() { return ParseTerm(Take()); }

Result<std::uint64_t> EntryParser::TakeValue() {
  Result<std::uint64_t> value = TakeTerm();
  while (value && TakeIf("|")) {
    const Result<std::uint64_t> more = TakeTerm();
    if (!more) return more;
    *value |= *more;
  }
  return value;
}

// A leading ~ turns over the whole mask: "~A|B" is everything but A and B.
Result<std::uint64_t> EntryParser::TakeMask(Width width) {
  const bool inverted = TakeIf("~");
  Result<std::uint64_t> mask = TakeValue();
  if (mask && inverted) *mask = ~*mask & (width == Width::k32 ? UINT32_MAX : UINT64_MAX);
  return mask;
}

Result<Range> EntryParser::TakeRange() {
  if (const std::size_t dots = Peek().find(".."); dots != std::string_view::npos) {
    const std::string_view word = Take();
    const Result<std::uint64_t> first = ParseTerm(word.substr(0, dots));
    const Result<std::uint64_t> last = ParseTerm(word.substr(dots + 2));
    if (!first) return std::unexpected(first.error());
    if (!last) return std::unexpected(last.error());
    if (*first > *last) return std::unexpected(fmt::format("the range {} is upside down", word));
    return Range{*first, *last};
  }
  const Result<std::uint64_t> value = TakeValue();
  if (!value) return std::unexpected(value.error());
  return Range{*value, *value};
}

Result<std::vector<Range>> EntryParser::TakeSet() {
  if (!TakeIf("{")) return std::unexpected("a set in { } is missing after 'in'");
  std::vector<Range> ranges;
  do {
    const Result<Range> range = TakeRange();
    if (!range) return std::unexpected(range.error());
    ranges.push_back(*range);
  } while (TakeIf(","));
  if (!TakeIf("}")) return std::unexpected(fmt::format("expected ',' or '}}' before '{}'", Peek()));
  std::ranges::sort(ranges);
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first <= ranges[i - 1].last) return std::unexpected("the set holds a value twice");
  }
  return ranges;
}

Result<Condition> EntryParser::TakeCondition() {
  Condition condition;
  const std::string_view word = Take();
  const bool shaped = word.size() == 7 && word.starts_with("arg") && word[3] >= '0' && word[3] <= '5';
  if (shaped && word.ends_with(":32")) {
    condition.width = Width::k32;
  } else if (shaped && word.ends_with(":64")) {
    condition.width = Width::k64;
  } else {
    return std::unexpected(fmt::format("'{}' is not an argument; write arg0:32 … arg5:64, with the width", word));
  }
  condition.argument = static_cast<unsigned>(word[3] - '0');
  const std::uint64_t all = condition.width == Width::k32 ? UINT32_MAX : UINT64_MAX;
  condition.mask = all;
  if (TakeIf("&")) {
    const Result<std::uint64_t> mask = TakeMask(condition.width);
    if (!mask) return std::unexpected(mask.error());
    condition.mask = *mask;
  }
  const std::string_view compare = Take();
  Result<std::vector<Range>> values = std::vector<Range>{};
  if (compare == "==" || compare == "!=") {
    const Result<std::uint64_t> value = TakeValue();
    if (!value) return std::unexpected(value.error());
    condition.sense = compare == "==" ? Sense::kIn : Sense::kNotIn;
    values = std::vector<Range>{{*value, *value}};
  } else if (compare == "in" || (compare == "not" && TakeIf("in"))) {
    condition.sense = compare == "in" ? Sense::kIn : Sense::kNotIn;
    values = TakeSet();
  } else {
    return std::unexpected(fmt::format("'{}' is not a comparison; use ==, !=, in or not in", compare));
  }
  if (!values) return std::unexpected(values.error());
  condition.values = *values;
  if ((condition.mask & ~all) != 0) return std::unexpected("the mask is wider than the argument");
  for (const Range& range : condition.values) {
    if (range.last > all) return std::unexpected("a value is wider than the argument");
    if (range.first == range.last && (range.first & ~condition.mask) != 0) {
      return std::unexpected(fmt::format("{:#x} can never be left by the mask {:#x}", range.first, condition.mask));
    }
    if (range.first != range.last && condition.width == Width::k64) {
      return std::unexpected("ranges of 64-bit arguments are not supported");
    }
  }
  return condition;
}

std::expected<void, std::string> SetName(std::string_view word, Rule& rule) {
  const std::size_t at = word.find('@');
  rule.name = std::string(word.substr(0, at));
  const bool named = !rule.name.empty() && std::ranges::all_of(rule.name, [](unsigned char c) {
    return std::islower(c) || std::isdigit(c) || c == '_';
  });
  if (!named) return std::unexpected(fmt::format("'{}' is not the name of a system call", word));
  if (at == std::string_view::npos) return {};
  const Result<std::uint64_t> number = ParseNumber(word.substr(at + 1));
  // From 424 on all architectures give new calls the same number; below that one number can't be right for all.
  if (!number || *number < 424 || *number > 9999) {
    return std::unexpected(fmt::format("'{}': a number after @ must be 424 … 9999", word));
  }
  rule.number = static_cast<int>(*number);
  return {};
}

Result<Rule> ParseEntry(std::string_view line) {
  Rule rule;
  const std::size_t hash = line.find('#');
  if (hash == std::string_view::npos || Trim(line.substr(hash + 1)).empty()) {
    return std::unexpected("the entry has no reason; end the line with '# why'");
  }
  rule.reason = std::string(Trim(line.substr(hash + 1)));
  const std::string_view entry = line.substr(0, hash);
  EntryParser parser(SplitWords(entry));
  if (const auto named = SetName(parser.Take(), rule); !named) return std::unexpected(named.error());
  const Result<Action> action = parser.TakeAction();
  if (!action) return std::unexpected(action.error());
  rule.action = *action;
  if (parser.TakeIf("if")) {
    rule.condition_text = std::string(Trim(entry.substr(entry.find(" if ") + 4)));
    do {
      Result<Condition> condition = parser.TakeCondition();
      if (!condition) return std::unexpected(condition.error());
      rule.conditions.push_back(*std::move(condition));
    } while (parser.TakeIf("and"));
  }
  if (!parser.AtEnd()) return std::unexpected(fmt::format("'{}' is not expected here", parser.Peek()));
  return rule;
}

}  // namespace

Result<RuleFile> ParseRules(std::string_view text, const std::string& path, FileKind kind) {
  RuleFile file{path, kind, {}};
  std::string group;
  std::string section;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto fail = [&](std::string_view why) {
      return std::unexpected(fmt::format("{}:{}: {}", path, number, why));
    };
    if (line.empty() || line.front() == '#') continue;
    if (line.front() == '[') {
      if (line.back() != ']') return fail("a group's title must end with ']'");
      group = std::string(Trim(line.substr(1, line.size() - 2)));
      const std::size_t colon = group.find(':');
      if (kind == FileKind::kNarrowing && colon == std::string::npos) return fail("write [flag: title]");
      section = kind == FileKind::kNarrowing ? group.substr(0, colon) : std::string();
      continue;
    }
    if (group.empty()) return fail("an entry stands before the first [group]");
    Result<Rule> rule = ParseEntry(line);
    if (!rule) return fail(rule.error());
    if (kind == FileKind::kNarrowing && rule->action.verb == Verb::kAllow) return fail("a narrowing can't allow");
    rule->group = group;
    rule->section = section;
    rule->line = number;
    file.rules.push_back(*std::move(rule));
  }
  return file;
}

}  // namespace belljar::seccomp
