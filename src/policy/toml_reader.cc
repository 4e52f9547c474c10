// The library is compiled into this file alone: it is large, and its own errors must not leave it. With exceptions off
// a parse gives a value or an error.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 16
#include <toml++/toml.h>

#include <algorithm>

#include "base/json_writer.h"
#include "policy/document.h"

namespace belljar::policy {
namespace {

constexpr unsigned kMaxDots = 8;  // in one dotted key; ours have one

// The parser bounds how deep values nest, but "a.a.a.a…" nests tables too, and half a million of them overflow the stack
// when they are destroyed. So dotted keys are measured before it sees them. This lexer only has to be right up to the
// first mistake in the text, since the parser stops there. Gives the line of the offence, or 0.
class DotCounter {
 public:
  explicit DotCounter(std::string_view text) : text_(text) {}

  unsigned OffendingLine() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '"' || c == '\'') {
        SkipString(c);
      } else {
        Count(c);
        ++at_;
        if (dots_ > kMaxDots) return line_;
      }
    }
    return 0;
  }

 private:
  void Count(char c) {
    if (c == '\n') ++line_;
    if (c == '.') ++dots_;
    if (c == '\n' || c == '=' || c == ',' || c == '[' || c == ']' || c == '{' || c == '}') dots_ = 0;
  }

  void SkipString(char quote) {
    const std::string_view triple = quote == '"' ? R"(""")" : "'''";
    const bool multiline = text_.substr(at_).starts_with(triple);
    at_ += multiline ? 3 : 1;
    while (at_ < text_.size()) {
      if (text_[at_] == '\n') {
        if (!multiline) return;  // a mistake; the parser will say so
        ++line_;
      }
      if (text_[at_] == '\\' && quote == '"' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n') {
        at_ += 2;
      } else if (multiline ? text_.substr(at_).starts_with(triple) : text_[at_] == quote) {
        at_ += multiline ? 3 : 1;
        // Up to two quotes may stand directly before the closing ones.
        while (multiline && at_ < text_.size() && text_[at_] == quote) ++at_;
        return;
      } else {
        ++at_;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  unsigned line_ = 1;
  unsigned dots_ = 0;
};

Node Convert(const toml::node& from);

Node ConvertTable(const toml::table& table) {
  Node node{.type = NodeType::kTable};
  for (const auto& [key, value] : table) {
    Node member = Convert(value);
    // A table made by "[limits]" has no place of its own in some forms; the key always has.
    member.line = key.source().begin.line != 0 ? key.source().begin.line : member.line;
    node.members.emplace_back(std::string(key.str()), std::move(member));
  }
  // The library sorts by name; errors should come in the order of the text.
  std::stable_sort(node.members.begin(), node.members.end(),
                   [](const auto& a, const auto& b) { return a.second.line < b.second.line; });
  return node;
}

Node Convert(const toml::node& from) {
  Node node;
  if (const toml::table* table = from.as_table()) {
    node = ConvertTable(*table);
  } else if (const toml::array* array = from.as_array()) {
    node.type = NodeType::kList;
    for (const toml::node& item : *array) node.items.push_back(Convert(item));
  } else if (const auto* text = from.as_string()) {
    node.type = NodeType::kText;
    node.text = text->get();
  } else if (const auto* integer = from.as_integer()) {
    node.type = NodeType::kNumber;
    node.text = std::to_string(integer->get());
  } else if (const auto* real = from.as_floating_point()) {
    node.type = NodeType::kNumber;
    node.text = PlainDecimal(real->get());
  } else {
    node.type = from.is_boolean() ? NodeType::kBool : NodeType::kDate;
  }
  node.line = from.source().begin.line;
  return node;
}

}  // namespace

Expected<Node> ReadToml(std::string_view text, std::string_view name) {
  const auto fail = [&](unsigned line, std::string message, std::string hint) {
    return std::unexpected(Error{StepAt(name, line, ""), std::move(message), std::move(hint)});
  };
  if (text.size() > kMaxDocumentBytes) return fail(0, "the policy is larger than 1 MiB", "split it or shorten its lists");
  if (!base::IsUtf8(text)) return fail(0, "the policy is not UTF-8 text", "save it as UTF-8");
  if (const unsigned line = DotCounter(text).OffendingLine(); line != 0) {
    return fail(line, "a dotted key has too many parts", "policy keys have at most two, such as limits.memory");
  }
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return fail(error.source().begin.line, "this is not TOML: " + std::string(error.description()),
                "see https://toml.io for how values are written");
  }
  return ConvertTable(parsed.table());
}

}  // namespace belljar::policy
