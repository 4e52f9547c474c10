#include "base/json_writer.h"

#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace belljar::base {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

unsigned char Byte(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]); }

struct Lead {
  std::size_t length;        // bytes of the whole sequence, 0 for a byte that starts none
  unsigned char low = 0x80;  // the second byte's range: this is where overlong forms and surrogates are shut out
  unsigned char high = 0xBF;
};

Lead LeadOf(unsigned char c) {
  if (c < 0x80) return {1};
  if (c < 0xC2) return {0};
  if (c < 0xE0) return {2};
  if (c == 0xE0) return {3, 0xA0, 0xBF};
  if (c == 0xED) return {3, 0x80, 0x9F};
  if (c < 0xF0) return {3};
  if (c == 0xF0) return {4, 0x90, 0xBF};
  if (c < 0xF4) return {4};
  if (c == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

// How many bytes at the start belong together, valid or not; `valid` says which.
std::size_t Piece(std::string_view text, bool& valid) {
  const Lead lead = LeadOf(Byte(text, 0));
  valid = false;
  if (lead.length == 0) return 1;
  for (std::size_t i = 1; i < lead.length; ++i) {
    const unsigned char low = i == 1 ? lead.low : 0x80;
    const unsigned char high = i == 1 ? lead.high : 0xBF;
    if (i >= text.size() || Byte(text, i) < low || Byte(text, i) > high) return i;
  }
  valid = true;
  return lead.length;
}

// Of one valid character with two bytes or three.
char32_t CodePoint(std::string_view character) {
  const char32_t lead = Byte(character, 0) & (character.size() == 2 ? 0x1FU : 0x0FU);
  char32_t code = lead;
  for (std::size_t i = 1; i < character.size(); ++i) code = code << 6 | (Byte(character, i) & 0x3FU);
  return code;
}

void AppendEscape(std::string& out, unsigned char c) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default:
      // By hand: a guest may fill its whole output with such bytes.
      out += "\\u00";
      out += kHex[c >> 4];
      out += kHex[c & 0xF];
  }
}

bool IsPlain(unsigned char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; }

}  // namespace

std::size_t Utf8Length(std::string_view text) {
  bool valid = false;
  const std::size_t length = text.empty() ? 0 : Piece(text, valid);
  return valid ? length : 0;
}

bool TerminalObeys(std::string_view character) {
  const unsigned char first = Byte(character, 0);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  if (character.size() > 3 || first > 0xE2) return false;
  const char32_t code = CodePoint(character);
  return (code >= 0x80 && code < 0xA0) || code == 0x61C || code == 0x200E || code == 0x200F ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

JsonWriter::JsonWriter(std::string& out, Layout layout, Drain drain)
    : out_(out), layout_(layout), drain_(std::move(drain)) {}

void JsonWriter::Flush() {
  if (!drain_) return;
  drain_(out_);
  out_.clear();
}

void JsonWriter::NewLine() {
  if (layout_ != Layout::kIndented) return;
  out_ += '\n';
  out_.append(std::size_t{2} * depth_, ' ');
}

void JsonWriter::BeforeValue() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (comma_) out_ += ',';
  if (depth_ > 0) NewLine();
}

JsonWriter& JsonWriter::Open(char bracket) {
  BeforeValue();
  out_ += bracket;
  ++depth_;
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::Close(char bracket) {
  --depth_;
  if (comma_) NewLine();
  out_ += bracket;
  comma_ = true;
  DrainIfLarge();
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  BeforeValue();
  Quote(key);
  out_ += layout_ == Layout::kIndented ? ": " : ":";
  after_key_ = true;
  return *this;
}

void JsonWriter::Quote(std::string_view text) {
  out_ += '"';
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size() && plain < kDrainAt && IsPlain(Byte(text, plain))) ++plain;
    out_.append(text.substr(0, plain));
    text.remove_prefix(plain);
    DrainIfLarge();
    if (text.empty() || IsPlain(Byte(text, 0))) continue;
    bool valid = false;
    const std::size_t length = Piece(text, valid);
    if (!valid) {
      out_ += kReplacement;
    } else if (length == 1) {
      AppendEscape(out_, Byte(text, 0));
    } else if (TerminalObeys(text.substr(0, length))) {
      out_ += fmt::format("\\u{:04x}", static_cast<unsigned>(CodePoint(text.substr(0, length))));
    } else {
      out_.append(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  out_ += '"';
}

JsonWriter& JsonWriter::String(std::string_view text) {
  BeforeValue();
  Quote(text);
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Base64(std::string_view bytes) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  BeforeValue();
  out_ += '"';
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t left = bytes.size() - at;
    const unsigned group = static_cast<unsigned>(Byte(bytes, at)) << 16 |
                           (left > 1 ? static_cast<unsigned>(Byte(bytes, at + 1)) << 8 : 0U) |
                           (left > 2 ? static_cast<unsigned>(Byte(bytes, at + 2)) : 0U);
    const std::array<char, 4> quad = {kDigits[group >> 18], kDigits[group >> 12 & 63],
                                      left > 1 ? kDigits[group >> 6 & 63] : '=', left > 2 ? kDigits[group & 63] : '='};
    out_.append(quad.data(), quad.size());
    DrainIfLarge();
  }
  out_ += '"';
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Number(std::uint64_t value) {
  BeforeValue();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Number(std::int64_t value) {
  BeforeValue();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Number(double value) {
  if (!std::isfinite(value)) return Null();
  BeforeValue();
  std::string text = fmt::format("{:.3f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  out_ += text == "-0" ? "0" : text;
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Bool(bool value) {
  BeforeValue();
  out_ += value ? "true" : "false";
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Null() {
  BeforeValue();
  out_ += "null";
  comma_ = true;
  return *this;
}

}  // namespace belljar::base
