#include <cstdlib>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/json_writer.h"
#include "policy/document.h"
#include "policy/units.h"

namespace belljar::policy {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

void AppendUtf8(std::string& out, std::uint32_t code) {
  const auto byte = [&out](std::uint32_t value) { out += static_cast<char>(value); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | code >> 6);
    byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3F));
    byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3F));
    byte(0x80 | (code >> 6 & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
}

// A reader of our own because errors must carry line numbers and duplicate keys must be refused; the libraries at hand
// do one or neither. Strict RFC 8259. The first mistake is kept and ends the reading.
class JsonReader {
 public:
  JsonReader(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Expected<Node> Read() {
    Node root;
    if (ReadValue(root, 0)) {
      SkipSpace();
      if (!AtEnd()) Fail("there is text after the end of the document");
      if (root.type != NodeType::kTable) {
        line_ = root.line;
        Fail(fmt::format("a policy is an object, found {}", Name(root.type)));
      }
    }
    if (error_) return std::unexpected(*error_);
    return root;
  }

 private:
  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek() const { return AtEnd() ? '\0' : text_[at_]; }

  bool Fail(std::string message, std::string hint = {}) {
    if (!error_) error_ = Error{StepAt(name_, line_, ""), "this is not JSON: " + std::move(message), std::move(hint)};
    return false;
  }

  bool FailHere(std::string_view wanted) {
    if (AtEnd()) return Fail(fmt::format("expected {}, found the end of the text", wanted));
    return Fail(fmt::format("expected {}, found {}", wanted, Quoted(text_.substr(at_, 1))));
  }

  void SkipSpace() {
    for (; !AtEnd(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return;
      }
    }
  }

  bool Take(char c) {
    if (AtEnd() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool ReadValue(Node& node, std::size_t depth) {
    SkipSpace();
    node.line = line_;
    if (depth >= kMaxDepth) return Fail("it is nested too deeply", "policies need three levels");
    switch (Peek()) {
      case '{': return ReadObject(node, depth);
      case '[': return ReadArray(node, depth);
      case '"': node.type = NodeType::kText; return ReadString(node.text);
      case 't': node.type = NodeType::kBool; return ReadWord("true");
      case 'f': node.type = NodeType::kBool; return ReadWord("false");
      case 'n': node.type = NodeType::kNull; return ReadWord("null");
      default: return ReadNumber(node);
    }
  }

  bool ReadWord(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return FailHere("a value");
    at_ += word.size();
    return true;
  }

  bool ReadObject(Node& node, std::size_t depth) {
    node.type = NodeType::kTable;
    std::set<std::string, std::less<>> seen;
    ++at_;
    SkipSpace();
    if (Take('}')) return true;
    do {
      SkipSpace();
      const unsigned line = line_;
      if (Peek() != '"') return FailHere("a key in double quotes");
      Node& item = node.items.emplace_back();
      if (!ReadString(item.name)) return false;
      if (!seen.insert(item.name).second) {
        return Fail(fmt::format("the key {} stands here twice", Quoted(item.name)), "remove one of the two");
      }
      SkipSpace();
      if (!Take(':')) return FailHere("\":\"");
      if (!ReadValue(item, depth + 1)) return false;
      item.line = line;
      SkipSpace();
    } while (Take(','));
    return Take('}') || FailHere("\",\" or \"}\"");
  }

  bool ReadArray(Node& node, std::size_t depth) {
    node.type = NodeType::kList;
    ++at_;
    SkipSpace();
    if (Take(']')) return true;
    do {
      if (!ReadValue(node.items.emplace_back(), depth + 1)) return false;
      SkipSpace();
    } while (Take(','));
    return Take(']') || FailHere("\",\" or \"]\"");
  }

  bool ReadNumber(Node& node) {
    node.type = NodeType::kNumber;
    const std::size_t begin = at_;
    Take('-');
    if (!Take('0') && !TakeDigits()) return FailHere("a value");
    if (Take('.') && !TakeDigits()) return FailHere("a digit");
    bool exponent = false;
    if (Peek() == 'e' || Peek() == 'E') {
      exponent = true;
      ++at_;
      if (!Take('+')) Take('-');
      if (!TakeDigits()) return FailHere("a digit");
    }
    node.text = std::string(text_.substr(begin, at_ - begin));
    if (exponent) node.text = PlainDecimal(std::strtod(node.text.c_str(), nullptr));
    return true;
  }

  bool TakeDigits() {
    const std::size_t begin = at_;
    while (IsDigit(Peek())) ++at_;
    return at_ > begin;
  }

  bool ReadString(std::string& out) {
    ++at_;
    while (!AtEnd()) {
      const char c = text_[at_];
      if (c == '"') return ++at_, true;
      if (static_cast<unsigned char>(c) < 0x20)
        return Fail("a string has a control character in it", "write \\n for it");
      if (c == '\\') {
        if (!ReadEscape(out)) return false;
        continue;
      }
      const std::size_t length = base::Utf8Length(text_.substr(at_));
      if (length == 0) return Fail("a string is not UTF-8", "save the file as UTF-8");
      out.append(text_.substr(at_, length));
      at_ += length;
    }
    return FailHere("a closing quote");
  }

  bool ReadEscape(std::string& out) {
    static constexpr std::string_view kLetters = "\"\\/bfnrt";
    static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    ++at_;
    const char c = Peek();
    if (c == 'u') return ReadUnicode(out);
    const std::size_t index = AtEnd() ? std::string_view::npos : kLetters.find(c);
    if (index == std::string_view::npos) return FailHere("one of \" \\ / b f n r t u after a backslash");
    out += kMeanings[index];
    ++at_;
    return true;
  }

  bool ReadUnicode(std::string& out) {
    const std::optional<std::uint32_t> first = ReadHex();
    if (!first) return FailHere("four hexadecimal digits");
    std::uint32_t code = *first;
    if (code >= 0xD800 && code < 0xE000) {  // half of a pair; the other half must follow
      const bool high = code < 0xDC00;
      const bool more = high && text_.substr(at_).starts_with("\\u");
      const std::optional<std::uint32_t> second = more ? (++at_, ReadHex()) : std::nullopt;
      if (!second || *second < 0xDC00 || *second >= 0xE000) return Fail("half of a surrogate pair stands alone");
      code = 0x10000 + ((code - 0xD800) << 10) + (*second - 0xDC00);
    }
    AppendUtf8(out, code);
    return true;
  }

  // Stands at the 'u'.
  std::optional<std::uint32_t> ReadHex() {
    if (text_.size() - at_ < 5) return std::nullopt;
    std::uint32_t value = 0;
    for (const char c : text_.substr(at_ + 1, 4)) {
      static constexpr std::string_view kHex = "0123456789abcdef";
      const std::size_t digit = kHex.find(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
      if (digit == std::string_view::npos) return std::nullopt;
      value = value << 4 | static_cast<std::uint32_t>(digit);
    }
    at_ += 5;
    return value;
  }

  std::string_view text_;
  std::string_view name_;
  std::size_t at_ = 0;
  unsigned line_ = 1;
  std::optional<Error> error_;
};

}  // namespace

Expected<Node> ReadJson(std::string_view text, std::string_view name) {
  if (text.size() > kMaxDocumentBytes) {
    return std::unexpected(
        Error{StepAt(name, 0, ""), "the policy is larger than 1 MiB", "split it or shorten its lists"});
  }
  return JsonReader(text, name).Read();
}

}  // namespace belljar::policy
