// policy/nearest.h: finds what the user probably meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace belljar::policy {

/// How many letters must be added, taken, changed or swapped with their neighbour to make one word of the other.
std::size_t EditDistance(std::string_view a, std::string_view b);

/// The candidate nearest to `word`, or nothing when none is near enough to be a likely slip.
std::string_view Nearest(std::string_view word, std::span<const std::string_view> candidates);

/// The full name of the key or section nearest to `name`, or nothing. "memory" finds "limits.memory".
std::string_view NearestKey(std::string_view name);

}  // namespace belljar::policy
