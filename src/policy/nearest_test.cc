#include "policy/nearest.h"

#include <array>

#include <gtest/gtest.h>

#include "policy/key.h"

namespace belljar::policy {
namespace {

TEST(EditDistance, CountsSlips) {
  EXPECT_EQ(EditDistance("", ""), 0U);
  EXPECT_EQ(EditDistance("memory", "memory"), 0U);
  EXPECT_EQ(EditDistance("memory", "memroy"), 1U);  // neighbours swapped
  EXPECT_EQ(EditDistance("memory", "memor"), 1U);
  EXPECT_EQ(EditDistance("memory", "mem"), 3U);
  EXPECT_EQ(EditDistance("", "abc"), 3U);
  EXPECT_EQ(EditDistance("cpu-time", "cpu_time"), 0U);  // flags and keys differ in this alone
  EXPECT_EQ(EditDistance("Memory", "memory"), 0U);
}

TEST(NearestKey, FindsWhatWasMeant) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kCases = {{
      {"limits.memroy", "limits.memory"},
      {"limits.cputime", "limits.cpu_time"},
      {"limits.timeout", ""},
      {"memory", "limits.memory"},
      {"files.memory", "limits.memory"},
      {"limits.hide", "files.hide"},
      {"limts", "limits"},
      {"enviroment", "environment"},
      {"lvl", "level"},
      {"min-level", "min_level"},
      {"completely.different_thing", ""},
  }};
  for (const auto& [slip, meant] : kCases) EXPECT_EQ(NearestKey(slip), meant) << slip;
}

TEST(NearestKey, DoesNotChokeOnLongNames) { EXPECT_EQ(NearestKey(std::string(100'000, 'a')), ""); }

// Any one letter dropped from any key still leads to that key.
TEST(NearestKey, SurvivesAnyDroppedLetter) {
  for (const Key& key : Keys()) {
    for (std::size_t i = key.name.size() - key.leaf().size(); i < key.name.size(); ++i) {
      std::string slip(key.name);
      slip.erase(i, 1);
      if (FindKey(slip) != nullptr) continue;
      EXPECT_EQ(NearestKey(slip), key.name) << slip;
    }
  }
}

}  // namespace
}  // namespace belljar::policy
