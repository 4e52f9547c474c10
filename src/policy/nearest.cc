#include "policy/nearest.h"

#include <algorithm>
#include <array>
#include <limits>

#include "policy/key.h"

namespace belljar::policy {
namespace {

constexpr std::size_t kLongest = 48;  // nothing that we know is longer, so a longer word is no slip of it
constexpr std::size_t kFar = std::numeric_limits<std::size_t>::max();

std::size_t NearEnough(std::string_view word) { return std::max<std::size_t>(2, word.size() / 3); }

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c == '-' ? '_' : c; }

std::string_view Leaf(std::string_view name) { return name.substr(name.rfind('.') + 1); }

}  // namespace

std::size_t EditDistance(std::string_view a, std::string_view b) {
  if (a.size() > kLongest || b.size() > kLongest) return kFar;
  std::array<std::array<std::size_t, kLongest + 1>, kLongest + 1> cost;
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = Lower(a[i - 1]) == Lower(b[j - 1]) ? 0 : 1;
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + change});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

std::string_view Nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::size_t best_distance = kFar;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = EditDistance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best_distance <= NearEnough(word) ? best : std::string_view();
}

std::string_view NearestKey(std::string_view name) {
  std::string_view best;
  std::size_t best_distance = kFar;
  for (const Key& key : Keys()) {
    // A key in the wrong section is nearer than a different key in the right one.
    const std::size_t by_leaf = EditDistance(Leaf(name), key.leaf());
    const std::size_t distance = std::min(EditDistance(name, key.name), by_leaf == kFar ? kFar : by_leaf + 1);
    if (distance < best_distance) {
      best = key.name;
      best_distance = distance;
    }
    // "[limts]" is a slip of the section itself.
    if (const std::size_t by_section = EditDistance(name, key.section()); by_section < best_distance) {
      best = key.section();
      best_distance = by_section;
    }
  }
  return best_distance <= NearEnough(Leaf(name)) ? best : std::string_view();
}

}  // namespace belljar::policy
