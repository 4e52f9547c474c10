// tests/fuzz/result_check.h: what must hold for the JSON of any Result, whatever a guest has written.
#pragma once

#include <string_view>

#include <belljar/result.h>

#include "require.h"

namespace belljar::fuzz {

// A reader of JSON that shares nothing with our writer: true when `text` is one whole value in valid UTF-8.
class JsonCheck {
 public:
  explicit JsonCheck(std::string_view text) : text_(text) {}
  bool Whole() { return Value() && at_ == text_.size(); }

 private:
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Take(char c) { return Peek() == c && ++at_ != 0; }
  bool Word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  bool Value() {
    switch (Peek()) {
      case '{': return List('}', true);
      case '[': return List(']', false);
      case '"': return String();
      case 't': return Word("true");
      case 'f': return Word("false");
      case 'n': return Word("null");
      default: return Number();
    }
  }
  bool List(char end, bool keys) {
    ++at_;
    if (Take(end)) return true;
    do {
      if (keys && !(String() && Take(':'))) return false;
      if (!Value()) return false;
    } while (Take(','));
    return Take(end);
  }
  bool Number() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && std::string_view("-+.eE0123456789").find(text_[at_]) != std::string_view::npos) ++at_;
    return at_ > begin;
  }
  bool String() {
    if (!Take('"')) return false;
    while (at_ < text_.size() && text_[at_] != '"') {
      const auto byte = static_cast<unsigned char>(text_[at_]);
      if (byte < 0x20) return false;
      if (byte == '\\') {
        at_ += at_ + 1 < text_.size() && text_[at_ + 1] == 'u' ? 6 : 2;
      } else if (!Character(byte)) {
        return false;
      }
    }
    return Take('"');
  }
  // One character of UTF-8: not overlong, no surrogate, nothing above U+10FFFF.
  bool Character(unsigned char first) {
    const int length = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    if (length == 0 || (first >= 0x80 && first < 0xc2) || at_ + static_cast<std::size_t>(length) > text_.size())
      return false;
    unsigned code = length == 1 ? first : first & (0x7fU >> length);
    for (int i = 1; i < length; ++i) {
      const auto next = static_cast<unsigned char>(text_[at_ + static_cast<std::size_t>(i)]);
      if ((next & 0xc0) != 0x80) return false;
      code = code << 6 | (next & 0x3f);
    }
    at_ += static_cast<std::size_t>(length);
    const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    return code >= least[length] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

inline void CheckResult(const Result& result) {
  const std::string json = ToJson(result);
  Require(JsonCheck(json).Whole(), "a result is one value of JSON in UTF-8", json);
  Require(json.find('\n') == std::string::npos, "a result is one line", json);
  const int status = ExitStatus(result);
  Require(status >= 0 && status <= 255, "an exit status fits");
  Require(result.ok() == (status == 0), "only a command that ended well is a success", json);
}

}  // namespace belljar::fuzz
