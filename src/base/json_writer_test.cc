#include "base/json_writer.h"

#include <limits>

#include <gtest/gtest.h>

namespace belljar::base {
namespace {

std::string StringOf(std::string_view text) {
  std::string out;
  JsonWriter(out).String(text);
  return out;
}

std::string NumberOf(double value) {
  std::string out;
  JsonWriter(out).Number(value);
  return out;
}

std::string Base64Of(std::string_view bytes) {
  std::string out;
  JsonWriter(out).Base64(bytes);
  return out;
}

TEST(JsonWriter, PutsCommasAndColons) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Field("a", 1).Key("b").BeginArray().Value("x").Value(true).Null().EndArray();
  json.Key("c")
      .BeginObject()
      .EndObject()
      .Field("d", std::optional<int>())
      .Field("e", std::optional<int>(-3))
      .EndObject();
  EXPECT_EQ(out, R"({"a":1,"b":["x",true,null],"c":{},"d":null,"e":-3})");
}

TEST(JsonWriter, IndentsWhenAsked) {
  std::string out;
  JsonWriter json(out, JsonWriter::Layout::kIndented);
  json.BeginObject()
      .Field("a", 1)
      .Key("b")
      .BeginArray()
      .Value(2)
      .EndArray()
      .Key("c")
      .BeginArray()
      .EndArray()
      .EndObject();
  EXPECT_EQ(out, "{\n  \"a\": 1,\n  \"b\": [\n    2\n  ],\n  \"c\": []\n}");
}

TEST(JsonWriter, EscapesWhatJsonForbids) {
  EXPECT_EQ(StringOf("a\"b\\c\n\r\t"), R"("a\"b\\c\n\r\t")");
  EXPECT_EQ(StringOf(std::string_view("\0\x1b\x7f", 3)), "\"\\u0000\\u001b\\u007f\"");
  // A terminal that shows the JSON would obey these too.
  EXPECT_EQ(StringOf("\u009b31m\u0080\u009f\u00a0"), "\"\\u009b31m\\u0080\\u009f\u00a0\"");
  EXPECT_EQ(StringOf("\u202e\u2066\u200f\u061c\u2028"), "\"\\u202e\\u2066\\u200f\\u061c\\u2028\"");
  EXPECT_EQ(StringOf("\u2022\u2026\u20ac\U0001f600"), "\"\u2022\u2026\u20ac\U0001f600\"");
}

struct Utf8Case {
  std::string_view bytes;
  std::string_view text;
};

TEST(JsonWriter, ReplacesWhatIsNotUtf8) {
  static constexpr Utf8Case kCases[] = {
      {"gr\xC3\xBC\xC3\x9F", "gr\xC3\xBC\xC3\x9F"},                              // two bytes
      {"\xE2\x82\xAC", "\xE2\x82\xAC"},                                          // three bytes
      {"\xF0\x9F\x94\x94", "\xF0\x9F\x94\x94"},                                  // four bytes
      {"\xF4\x8F\xBF\xBF", "\xF4\x8F\xBF\xBF"},                                  // the last code point
      {"a\xFFz", "a\xEF\xBF\xBDz"},                                              // a byte that starts nothing
      {"\x80", "\xEF\xBF\xBD"},                                                  // a continuation alone
      {"\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD"},                                  // overlong
      {"\xE0\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},                  // overlong
      {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},                  // surrogate
      {"\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},  // beyond the last
      {"\xE2\x82", "\xEF\xBF\xBD"},                                              // cut off: one piece, one replacement
      {"\xF0\x9F\x94z", "\xEF\xBF\xBDz"},                                        // cut off before a letter
  };
  for (const Utf8Case& c : kCases) {
    EXPECT_EQ(StringOf(c.bytes), "\"" + std::string(c.text) + "\"");
    EXPECT_EQ(IsUtf8(c.bytes), c.bytes == c.text) << StringOf(c.bytes);
  }
}

TEST(JsonWriter, NumbersHaveAtMostThreeDecimals) {
  EXPECT_EQ(NumberOf(0), "0");
  EXPECT_EQ(NumberOf(-0.0001), "0");
  EXPECT_EQ(NumberOf(12.5), "12.5");
  EXPECT_EQ(NumberOf(1.23456), "1.235");
  EXPECT_EQ(NumberOf(100), "100");
  EXPECT_EQ(NumberOf(std::numeric_limits<double>::quiet_NaN()), "null");
  EXPECT_EQ(NumberOf(std::numeric_limits<double>::infinity()), "null");
  std::string out;
  JsonWriter(out).Value(std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(out, "18446744073709551615");
}

TEST(JsonWriter, Base64HasPadding) {
  EXPECT_EQ(Base64Of(""), R"("")");
  EXPECT_EQ(Base64Of("f"), R"("Zg==")");
  EXPECT_EQ(Base64Of("fo"), R"("Zm8=")");
  EXPECT_EQ(Base64Of("foo"), R"("Zm9v")");
  EXPECT_EQ(Base64Of("\xFF\xFE\xFD"), R"("//79")");
}

// However much is written, the buffer stays near kDrainAt; what is drained is the whole text.
TEST(JsonWriter, DrainsSoThatMemoryStaysSmall) {
  const std::string nul_bytes(1 << 20, '\0');
  std::string buffer;
  std::string all;
  std::size_t largest = 0;
  JsonWriter json(buffer, JsonWriter::Layout::kCompact, [&](std::string_view piece) {
    largest = std::max(largest, piece.size());
    all += piece;
  });
  json.BeginArray().String(nul_bytes).Base64(nul_bytes).String(std::string(1 << 20, 'a')).EndArray();
  json.Flush();
  EXPECT_LT(largest, 3 * JsonWriter::kDrainAt);
  EXPECT_TRUE(buffer.empty());

  std::string whole;
  JsonWriter plain(whole);
  plain.BeginArray().String(nul_bytes).Base64(nul_bytes).String(std::string(1 << 20, 'a')).EndArray();
  EXPECT_EQ(all, whole);
}

}  // namespace
}  // namespace belljar::base
