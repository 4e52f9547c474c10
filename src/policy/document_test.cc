#include "policy/document.h"

#include <string>

#include <gtest/gtest.h>

namespace belljar::policy {
namespace {

const Node* Member(const Node& table, std::string_view name) {
  for (const Node& node : table.items) {
    if (node.name == name) return &node;
  }
  return nullptr;
}

TEST(ReadJson, KeepsLinesTypesAndOrder) {
  const Expected<Node> root =
      ReadJson("{\n \"b\": 1.50,\n \"a\": [true, null,\n  \"x\"],\n \"t\": {\"k\": -2e2}}", "p.json");
  ASSERT_TRUE(root) << root.error().Text();
  ASSERT_EQ(root->items.size(), 3U);
  EXPECT_EQ(root->items[0].name, "b");
  EXPECT_EQ(root->items[0].text, "1.50");
  EXPECT_EQ(root->items[0].line, 2U);
  const Node& list = root->items[1];
  ASSERT_EQ(list.items.size(), 3U);
  EXPECT_EQ(list.items[0].type, NodeType::kBool);
  EXPECT_EQ(list.items[1].type, NodeType::kNull);
  EXPECT_EQ(list.items[2].line, 4U);
  EXPECT_EQ(Member(root->items[2], "k")->text, "-200");
}

TEST(ReadJson, ReadsEscapes) {
  const Expected<Node> root = ReadJson(R"({"a":"\"\\\/\b\f\n\r\t\u0041\u00fc\u20ac\ud83d\udd14"})", "p.json");
  ASSERT_TRUE(root) << root.error().Text();
  EXPECT_EQ(root->items[0].text, "\"\\/\b\f\n\r\tA\xC3\xBC\xE2\x82\xAC\xF0\x9F\x94\x94");
}

struct WrongCase {
  std::string_view text;
  std::string_view error;
};

TEST(ReadJson, RefusesWhatIsNotJson) {
  static constexpr WrongCase kCases[] = {
      {"", "p.json:1: this is not JSON: expected a value, found the end of the text"},
      {"[]", "p.json:1: this is not JSON: a policy is an object, found a list"},
      {"7", "a policy is an object, found a number"},
      {"{", "expected a key in double quotes, found the end"},
      {"{\"a\" 1}", "expected \":\", found \"1\""},
      {"{\"a\":1,}", "expected a key in double quotes, found \"}\""},
      {"{\"a\":1 \"b\":2}", "expected \",\" or \"}\""},
      {"{\"a\":[1 2]}", "expected \",\" or \"]\""},
      {"{\"a\":[1,]}", "expected a value"},
      {"{'a':1}", "expected a key in double quotes"},
      {"{\"a\":01}", "expected \",\" or \"}\", found \"1\""},
      {"{\"a\":1.}", "expected a digit"},
      {"{\"a\":1e}", "expected a digit"},
      {"{\"a\":+1}", "expected a value"},
      {"{\"a\":.5}", "expected a value"},
      {"{\"a\":NaN}", "expected a value"},
      {"{\"a\":tru}", "expected a value"},
      {"{\"a\":\"x", "expected a closing quote"},
      {"{\"a\":\"x\ny\"}", "control character"},
      {"{\"a\":\"\\x\"}", "after a backslash"},
      {"{\"a\":\"\\u12g4\"}", "four hexadecimal digits"},
      {"{\"a\":\"\\u12", "four hexadecimal digits"},
      {"{\"a\":\"\\ud83d\"}", "half of a surrogate pair"},
      {"{\"a\":\"\\udd14\"}", "half of a surrogate pair"},
      {"{\"a\":\"\\ud83d\\u0041\"}", "half of a surrogate pair"},
      {"{\"a\":\"\xFF\"}", "is not UTF-8"},
      {"{} x", "there is text after the end"},
      {"{\"a\":1,\n\n\"a\":2}", "p.json:3: this is not JSON: the key \"a\" stands here twice"},
      {"{\"a\": /* no */ 1}", "expected a value"},
  };
  for (const WrongCase& c : kCases) {
    const Expected<Node> root = ReadJson(c.text, "p.json");
    ASSERT_FALSE(root) << c.text;
    EXPECT_NE(root.error().Text().find(c.error), std::string::npos) << c.text << " gave " << root.error().Text();
  }
}

TEST(ReadJson, BoundsDepthAndSize) {
  EXPECT_FALSE(ReadJson("{\"a\":" + std::string(500'000, '['), "p.json"));
  EXPECT_TRUE(ReadJson("{\"a\":" + std::string(kMaxDepth - 1, '[') + std::string(kMaxDepth - 1, ']') + "}", "p.json"));
  EXPECT_FALSE(ReadJson("{\"a\":" + std::string(kMaxDepth, '[') + std::string(kMaxDepth, ']') + "}", "p.json"));
  EXPECT_FALSE(ReadJson("{}" + std::string(kMaxDocumentBytes, ' '), "p.json"));
}

TEST(ReadToml, KeepsLinesTypesAndOrder) {
  const Expected<Node> root = ReadToml(
      "zoo = 1\nareal = 1.5\nlist = [\n 'x',\n true]\n[t]\nk = 1e3\ndate = 2000-01-01\n[t.u]\nv = ''\n", "p.toml");
  ASSERT_TRUE(root) << root.error().Text();
  EXPECT_EQ(root->items[0].name, "zoo");
  EXPECT_EQ(root->items[0].line, 1U);
  EXPECT_EQ(root->items[1].text, "1.5");
  EXPECT_EQ(Member(*root, "list")->items[1].line, 5U);
  EXPECT_EQ(Member(*root, "list")->items[1].type, NodeType::kBool);
  const Node& table = *Member(*root, "t");
  EXPECT_EQ(table.line, 6U);
  EXPECT_EQ(Member(table, "k")->text, "1000");
  EXPECT_EQ(Member(table, "date")->type, NodeType::kDate);
  EXPECT_EQ(Member(*Member(table, "u"), "v")->line, 10U);
}

TEST(ReadToml, NamesTheLineOfAMistake) {
  for (const std::string_view text : {"a = 1\nb = \n", "a = 1\na = 2\n", "a = 1\n[b\n", "a = 1\nb = \"x\n"}) {
    const Expected<Node> root = ReadToml(text, "p.toml");
    ASSERT_FALSE(root) << text;
    EXPECT_TRUE(root.error().Text().starts_with("p.toml:2: this is not TOML: ")) << root.error().Text();
  }
}

std::string Repeat(std::string_view piece, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

// Each of these is a way to nest half a million tables, which would overflow the stack; refused, they cost nothing.
TEST(ReadToml, RefusesKeysThatNestWithoutEnd) {
  constexpr std::size_t kMany = 150'000;
  const std::string dotted = Repeat("a.", kMany) + "a";
  EXPECT_FALSE(ReadToml(dotted + " = 1", "p.toml"));
  EXPECT_FALSE(ReadToml("[" + dotted + "]", "p.toml"));
  EXPECT_FALSE(ReadToml("[[" + dotted + "]]", "p.toml"));
  EXPECT_FALSE(ReadToml("x = {" + dotted + " = 1}", "p.toml"));
  EXPECT_FALSE(ReadToml(Repeat("\"=\".", kMany) + "a = 1", "p.toml"));
  EXPECT_FALSE(ReadToml(Repeat("'#' . ", kMany) + "a = 1", "p.toml"));
  EXPECT_FALSE(ReadToml("x = \"\"\"\n#\"\"\"\n" + dotted + " = 1", "p.toml"));
  EXPECT_FALSE(ReadToml("x = \"\\\"#\"\n" + dotted + " = 1", "p.toml"));
  EXPECT_FALSE(ReadToml("x = ['''#''', {" + dotted + " = 1}]", "p.toml"));
  EXPECT_FALSE(ReadToml("# x\xE2\x80\xA8" + dotted + " = 1\n" + dotted + " = 1", "p.toml"));
  EXPECT_FALSE(ReadToml("x = " + Repeat("[", kMany), "p.toml"));
  EXPECT_FALSE(ReadToml("x = " + Repeat("{a=", kMany), "p.toml"));
}

TEST(ReadToml, DotsElsewhereAreNoKeys) {
  const std::string dots(200, '.');
  EXPECT_TRUE(ReadToml("x = \"" + dots + "\" # " + dots + "\n# " + dots + "\ny = '" + dots + "'", "p.toml"));
  EXPECT_TRUE(ReadToml("x = [1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5]", "p.toml"));
  EXPECT_TRUE(ReadToml("x = \"\"\"\n" + dots + "\\\"\"\"\"\"\ny = 1", "p.toml"));
}

// Found by fuzzing: an assertion of the library failed.
TEST(ReadToml, SurvivesKeysThatAreNone) {
  for (const std::string_view text : {"[\\]", "[\\u0000]", "[[\\]]", "[=]", "a.\\ = 1", "{}"}) {
    EXPECT_FALSE(ReadToml(text, "p.toml")) << text;
  }
}

// Found by fuzzing: the library's own test for spaces was undefined for letters such as U+0493.
TEST(ReadToml, LettersAreNoSpaces) {
  EXPECT_FALSE(ReadToml("a.b\xD2\x93 = 1", "p.toml"));
  EXPECT_FALSE(ReadToml("\xC3\xBC = 1", "p.toml"));
  EXPECT_FALSE(
      ReadToml("a =\xC2\xA0"
               "1",
               "p.toml"));
  const Expected<Node> root = ReadToml("a = \"\"\"x\\\n  \xD2\x93\"\"\"", "p.toml");
  ASSERT_TRUE(root) << root.error().Text();
  EXPECT_EQ(root->items[0].text, "x\xD2\x93");
}

TEST(ReadToml, BoundsSizeAndText) {
  EXPECT_FALSE(ReadToml("#" + std::string(kMaxDocumentBytes, ' '), "p.toml"));
  EXPECT_FALSE(ReadToml("a = \"\xFF\"", "p.toml"));
  EXPECT_TRUE(ReadToml("", "p.toml"));
}

}  // namespace
}  // namespace belljar::policy
