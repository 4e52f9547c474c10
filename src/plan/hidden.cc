#include "plan/hidden.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <optional>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "plan/file_view.h"
#include "plan/pattern.h"
#include "sys/files.h"

namespace belljar::plan {
namespace {

constexpr std::size_t kMostNames = 262'144;                // To look at, for one pattern.
constexpr std::size_t kMostFound = 4'096;                  // Each is a mount.
constexpr std::size_t kLongest = PATH_MAX - NAME_MAX - 2;  // Of a directory whose entries can be looked at.

using PatternParts = std::span<const std::string_view>;

class Finder {
 public:
  Finder(const std::string& pattern, const std::vector<Shown>& trees, const std::vector<std::string>& kernel)
      : pattern_(pattern), trees_(trees), kernel_(kernel) {}

  std::expected<std::vector<std::string>, CompileError> Find() {
    const std::vector<std::string_view> parts = Parts(pattern_);
    for (std::size_t i = 0; i < trees_.size(); ++i) {
      tree_ = i;
      Enter(parts, Parts(trees_[i].target));
      if (mistake_) return std::unexpected(*mistake_);
    }
    std::ranges::sort(found_);
    found_.erase(std::ranges::unique(found_).begin(), found_.end());
    return std::move(found_);
  }

 private:
  // Down to the tree itself, which is not looked at on the host.
  void Enter(PatternParts pattern, std::span<const std::string_view> target) {
    if (target.empty()) return Walk(pattern, "");
    if (pattern.empty()) return;
    if (pattern[0] == kAnyDepth) {
      Enter(pattern, target.subspan(1));
      return Enter(pattern.subspan(1), target);
    }
    if (Matches(pattern[0], std::string(target[0]))) Enter(pattern.subspan(1), target.subspan(1));
  }

  void Fail(const std::string& why) {
    mistake_ = Mistake("hide " + pattern_, why, "name a smaller part, as in /data/keys/*.pem");
  }

  std::string SourceOf(const std::string& below) const {
    const std::string& top = trees_[tree_].source;
    if (below.empty()) return top;
    return top == "/" ? below : top + below;
  }
  sys::FileKind KindOf(const std::string& below) const {
    const std::string source = SourceOf(below);
    const auto shows = [&](const std::string& tree) { return sys::IsWithin(source, tree); };
    return std::ranges::any_of(kernel_, shows) ? sys::FileKind::kAbsent : sys::LinkStatus(source).kind;
  }

  // `below` is the way from the tree's top, with a slash in front.
  void Walk(PatternParts pattern, const std::string& below) {
    if (mistake_) return;
    if (pattern.empty()) return Add(below);
    const std::string source = SourceOf(below);
    if (source.size() >= kLongest) return Fail(source.substr(0, 100) + "… is deeper than a path can name");
    const sys::FileKind kind = KindOf(below);
    if (kind == sys::FileKind::kSymlink) {
      return Fail(fmt::format("{} is a link to {}, and names are looked for by their real paths", source,
                              sys::RealPath(source).value_or("nowhere")));
    }
    if (kind != sys::FileKind::kDirectory) return;
    if (!IsPattern(pattern[0])) {
      const std::string next = below + "/" + std::string(pattern[0]);
      if (KindOf(next) != sys::FileKind::kAbsent) Walk(pattern.subspan(1), next);
      return;
    }
    const auto entries = sys::ListDirectory(source, kMostNames);
    // One that is closed to this user is closed to its guests; in one that is only not to be listed they may open all.
    if (!entries && ::access(source.c_str(), X_OK) != 0 && errno == EACCES) return;
    if (!entries) return Fail(source + " can't be read, or holds too many names to look through");
    seen_ += entries->size();
    if (seen_ > kMostNames) return Fail(fmt::format("there are more than {} names to look at", kMostNames));
    const bool any_depth = pattern[0] == kAnyDepth;
    if (any_depth) Walk(pattern.subspan(1), below);
    for (const std::string& entry : *entries) {
      const std::string next = below + "/" + entry;
      if (any_depth) {
        if (KindOf(next) == sys::FileKind::kDirectory) Walk(pattern, next);
      } else if (Matches(pattern[0], entry) && (pattern.size() == 1 || KindOf(next) == sys::FileKind::kDirectory)) {
        Walk(pattern.subspan(1), next);
      }
    }
  }

  void Add(const std::string& below) {
    const std::string path = trees_[tree_].target + below;
    const auto covers = [&](const Shown& later) { return sys::IsWithin(path, later.target); };
    if (std::any_of(trees_.begin() + static_cast<std::ptrdiff_t>(tree_) + 1, trees_.end(), covers)) return;
    if (found_.size() == kMostFound) return Fail(fmt::format("it stands for more than {} names", kMostFound));
    found_.push_back(path);
  }

  const std::string& pattern_;
  const std::vector<Shown>& trees_;
  const std::vector<std::string>& kernel_;
  std::size_t tree_ = 0;
  std::size_t seen_ = 0;
  std::vector<std::string> found_;
  std::optional<CompileError> mistake_;
};

}  // namespace

std::expected<std::vector<std::string>, CompileError> FindHidden(const std::string& pattern,
                                                                 const std::vector<Shown>& trees,
                                                                 const std::vector<std::string>& kernel) {
  return Finder(pattern, trees, kernel).Find();
}

bool IsAsBefore(const HiddenNames& hidden) {
  std::vector<std::string> now;
  for (const std::string& pattern : hidden.patterns) {
    const auto found = FindHidden(pattern, hidden.trees, hidden.kernel);
    if (!found) return false;
    now.insert(now.end(), found->begin(), found->end());
  }
  return now == hidden.found;
}

}  // namespace belljar::plan
