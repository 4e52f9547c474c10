#include "policy/units.h"

#include <string>

#include <gtest/gtest.h>

namespace belljar::policy {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kS = 1000 * kMs;

struct Case {
  Unit unit;
  std::string_view text;
  std::uint64_t value;
};

TEST(ParseNumber, ReadsHumanForms) {
  static constexpr Case kCases[] = {
      {Unit::kBytes, "0", 0},
      {Unit::kBytes, "4096", 4096},
      {Unit::kBytes, "4096.000", 4096},
      {Unit::kBytes, "64K", 64 << 10},
      {Unit::kBytes, "64KiB", 64 << 10},
      {Unit::kBytes, "512M", 512ULL << 20},
      {Unit::kBytes, "1.5G", 3ULL << 29},
      {Unit::kBytes, "0.000001M", 1},
      {Unit::kBytes, "2T", 2ULL << 40},
      {Unit::kBytes, "18446744073709551614", 18446744073709551614ULL},
      {Unit::kDuration, "30", 30 * kS},
      {Unit::kDuration, "0.25", 250 * kMs},
      {Unit::kDuration, "300ms", 300 * kMs},
      {Unit::kDuration, "1.5s", 1500 * kMs},
      {Unit::kDuration, "2m", 120 * kS},
      {Unit::kDuration, "1h", 3600 * kS},
      {Unit::kDuration, "0.000000001s", 1},
      {Unit::kCpus, "2", 2000},
      {Unit::kCpus, "0.5", 500},
      {Unit::kCount, "64", 64},
      {Unit::kCount, "64.0", 64},
  };
  for (const Case& c : kCases) {
    const Expected<std::uint64_t> value = ParseNumber(c.unit, c.text);
    ASSERT_TRUE(value) << c.text << ": " << value.error().Text();
    EXPECT_EQ(*value, c.value) << c.text;
  }
}

struct WrongCase {
  Unit unit;
  std::string_view text;
  std::string_view why;
};

TEST(ParseNumber, RefusesTheRestAndSaysWhy) {
  static constexpr WrongCase kCases[] = {
      {Unit::kBytes, "", "is not a size"},
      {Unit::kBytes, "M", "is not a size"},
      {Unit::kBytes, "512MB", "is not a size"},
      {Unit::kBytes, "512m", "is not a size"},
      {Unit::kBytes, "512 M", "is not a size"},
      {Unit::kBytes, " 512", "is not a size"},
      {Unit::kBytes, "+512", "is not a size"},
      {Unit::kBytes, "0x10", "is not a size"},
      {Unit::kBytes, "1e3", "is not a size"},
      {Unit::kBytes, "1.M", "is not a size"},
      {Unit::kBytes, ".5M", "is not a size"},
      {Unit::kBytes, "1.2.3M", "is not a size"},
      {Unit::kBytes, "1.5", "is not whole"},
      {Unit::kBytes, "-1", "is negative"},
      {Unit::kBytes, "-0.5M", "is negative"},
      {Unit::kBytes, "nan", "is not a size"},
      {Unit::kBytes, "inf", "is not a size"},
      {Unit::kBytes, "18446744073709551615", "is too large"},
      {Unit::kBytes, "18446744073709551616", "is too large"},
      {Unit::kBytes, "16777216T", "is too large"},
      {Unit::kBytes, "99999999999999999999T", "is too large"},
      {Unit::kBytes, "999999999999999999999999999999999", "is too large"},
      {Unit::kBytes, "1.0123456789M", "nine decimals"},
      {Unit::kDuration, "12 parsecs", "is not a duration"},
      {Unit::kDuration, "5d", "is not a duration"},
      {Unit::kDuration, "-1s", "is negative"},
      {Unit::kDuration, "nan", "is not a duration"},
      {Unit::kCpus, "two", "is not a number of CPUs"},
      {Unit::kCount, "64K", "is not a whole number"},
      {Unit::kCount, "1.5", "is not whole"},
  };
  for (const WrongCase& c : kCases) {
    const Expected<std::uint64_t> value = ParseNumber(c.unit, c.text);
    ASSERT_FALSE(value) << c.text;
    EXPECT_NE(value.error().message.find(c.why), std::string::npos) << value.error().message;
    EXPECT_FALSE(value.error().hint.empty()) << c.text;
  }
}

TEST(FormatNumber, IsWhatAPersonWouldWrite) {
  static constexpr Case kCases[] = {
      {Unit::kBytes, "0", 0},
      {Unit::kBytes, "1000", 1000},
      {Unit::kBytes, "64K", 65536},
      {Unit::kBytes, "1536M", 3 << 29},
      {Unit::kBytes, "2G", 2ULL << 30},
      {Unit::kDuration, "5m", 300 * kS},
      {Unit::kDuration, "90s", 90 * kS},
      {Unit::kDuration, "1.5s", 1500 * kMs},
      {Unit::kDuration, "300ms", 300 * kMs},
      {Unit::kDuration, "0.5ms", 500'000},
      {Unit::kDuration, "2h", 7200 * kS},
      {Unit::kCpus, "0.5", 500},
      {Unit::kCpus, "12", 12000},
      {Unit::kCount, "64", 64},
  };
  for (const Case& c : kCases) EXPECT_EQ(FormatNumber(c.unit, c.value), c.text);
}

TEST(FormatNumber, IsTheInverseOfParse) {
  std::uint64_t value = 1;
  for (int i = 0; i < 20'000; ++i) {
    value = value * 6364136223846793005ULL + 1442695040888963407ULL;
    const std::uint64_t sample = value >> (value % 61);
    for (const Unit unit : {Unit::kBytes, Unit::kDuration, Unit::kCpus, Unit::kCount}) {
      const Expected<std::uint64_t> again = ParseNumber(unit, FormatNumber(unit, sample));
      ASSERT_TRUE(again) << sample << " as " << FormatNumber(unit, sample);
      ASSERT_EQ(*again, sample) << FormatNumber(unit, sample);
    }
  }
}

TEST(Quoted, HidesControlCharactersAndShortens) {
  EXPECT_EQ(Quoted("a\x1b[31m\n"), "\"a?[31m?\"");
  EXPECT_LT(Quoted(std::string(1000, 'a')).size(), 70U);
}

}  // namespace
}  // namespace belljar::policy
