// base/json_writer.h: writes JSON as it goes, without a document in memory.
//
//   std::string out;
//   JsonWriter json(out);
//   json.BeginObject().Field("verdict", "exited").Key("exit_code").Null().EndObject();   // {"verdict":"exited",…
//
// The writer appends to a string that the caller owns. Give it a drain as well and the string stays small however much
// is written: whenever it holds more than kDrainAt bytes it is handed over and emptied. Commas are the writer's
// business; that objects get keys and that scopes are closed is the caller's. One thread per writer.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace belljar::base {

class JsonWriter {
 public:
  /// Receives what was written so far; must consume all of it.
  using Drain = std::function<void(std::string_view)>;
  static constexpr std::size_t kDrainAt = 16 * 1024;

  enum class Layout : std::uint8_t { kCompact, kIndented };

  explicit JsonWriter(std::string& out, Layout layout = Layout::kCompact, Drain drain = {});
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }
  JsonWriter& Key(std::string_view key);

  /// Bytes that are not UTF-8 become U+FFFD, one for each longest broken piece.
  JsonWriter& String(std::string_view text);
  /// Any bytes as base64 in a string.
  JsonWriter& Base64(std::string_view bytes);
  JsonWriter& Number(std::uint64_t value);
  JsonWriter& Number(std::int64_t value);
  /// At most three decimals; what is not finite becomes null, since JSON has no word for it.
  JsonWriter& Number(double value);
  JsonWriter& Bool(bool value);
  JsonWriter& Null();

  JsonWriter& Value(std::string_view text) { return String(text); }
  JsonWriter& Value(const std::string& text) { return String(text); }
  JsonWriter& Value(const char* text) { return String(text); }
  JsonWriter& Value(bool value) { return Bool(value); }
  JsonWriter& Value(double value) { return Number(value); }
  template <std::signed_integral T>
  JsonWriter& Value(T value) {
    return Number(static_cast<std::int64_t>(value));
  }
  template <std::unsigned_integral T>
  JsonWriter& Value(T value) {
    return Number(static_cast<std::uint64_t>(value));
  }
  template <typename T>
  JsonWriter& Value(const std::optional<T>& value) {
    return value ? Value(*value) : Null();
  }
  template <typename T>
  JsonWriter& Field(std::string_view key, const T& value) {
    return Key(key).Value(value);
  }

  /// Hands the rest to the drain; without one it does nothing.
  void Flush();

 private:
  JsonWriter& Open(char bracket);
  JsonWriter& Close(char bracket);
  void BeforeValue();
  void NewLine();
  void Quote(std::string_view text);
  void DrainIfLarge() {
    if (drain_ && out_.size() >= kDrainAt) Flush();
  }

  std::string& out_;
  Layout layout_;
  Drain drain_;
  unsigned depth_ = 0;
  bool comma_ = false;      // something stands before the next item of this scope
  bool after_key_ = false;  // the next value belongs to the key just written
};

/// The length of the valid UTF-8 sequence at the start of text, or 0. Overlong forms and surrogates are not valid.
std::size_t Utf8Length(std::string_view text);
bool IsUtf8(std::string_view text);
/// Whether a terminal does something else with one valid character than to show it: control characters, C1 (two bytes)
/// included, and marks that turn the direction of text around, so that a name would read as another one.
bool TerminalObeys(std::string_view character);

}  // namespace belljar::base
