#include "backend/tighten.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <belljar/limit.h>

#include "policy/key.h"

namespace belljar::backend {
namespace {

using policy::Key;
using policy::Kind;

constexpr std::string_view kWatched[] = {"limits.memory", "limits.processes"};
// Sizes of filesystems that are mounted already, by somebody who can do so no more.
constexpr std::string_view kFixed[] = {"limits.disk", "limits.files", "files.tmp"};

Error Wrong(const Key& key, std::string message, std::string hint) {
  return {.step = fmt::format("tighten {}", key.name), .message = std::move(message), .hint = std::move(hint)};
}

// The accessors of the table give writable references; nothing is written.
bool Same(const Key& key, Policy& now, Policy& wanted) {
  switch (key.kind) {
    case Kind::kProfile: return true;  // A name; what it stands for is compared by itself.
    case Kind::kChoice:
    case Kind::kNumber: return key.get(now) == key.get(wanted);
    case Kind::kText: return key.text(now) == key.text(wanted);
    case Kind::kTextList: return key.list(now) == key.list(wanted);
    case Kind::kMounts: return now.files.mounts == wanted.files.mounts;
    case Kind::kTextMap: return now.environment.set == wanted.environment.set;
  }
  return false;
}

}  // namespace

Expected<void> CheckTighter(const Policy& now, const Policy& wanted) {
  Policy before = now;
  Policy after = wanted;
  if (before.host_network_granted() != after.host_network_granted()) {
    return std::unexpected(Error{.step = "tighten the network",
                                 .message = "that can't be changed while the sandbox lives",
                                 .hint = "open another sandbox"});
  }
  for (const Key& key : policy::Keys()) {
    if (Same(key, before, after)) continue;
    const bool limit = key.kind == Kind::kNumber && std::ranges::find(kFixed, key.name) == std::end(kFixed);
    if (!limit) {
      return std::unexpected(
          Wrong(key, "that can't be changed while the sandbox lives", "open another sandbox for the other policy"));
    }
    const auto old_value = key.get(before);
    const auto new_value = key.get(after);
    // SECURITY: what has no limit is watched by nobody, and where no cgroup counts it that would be all that holds it.
    const bool watched = std::ranges::find(kWatched, key.name) != std::end(kWatched);
    if (watched && old_value == kUnlimited) {
      return std::unexpected(Wrong(key, "the sandbox was made without one, so nobody watches it",
                                   "give it some limit from the start, however high"));
    }
    if (new_value && (!old_value || *new_value < *old_value)) continue;
    return std::unexpected(
        Wrong(key,
              fmt::format("{} is more than the {} that it has", new_value ? FormatValue(key, *new_value) : "no value",
                          old_value ? FormatValue(key, *old_value) : "default"),
              "limits of a live sandbox can only be lowered"));
  }
  return {};
}

}  // namespace belljar::backend
