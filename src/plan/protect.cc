#include "plan/protect.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <string_view>
#include <tuple>

#include "plan/git_places.h"
#include "plan/pattern.h"
#include "policy/protect.h"

namespace belljar::plan {
namespace {

constexpr std::size_t kMostEntries = 10'000;  // Of a directory that a pattern is looked for in.
constexpr std::size_t kMostNames = 262'144;   // To look at, all patterns together.
constexpr std::size_t kMostFound = 16'384;    // Of those that are there, or were named as they are.
constexpr std::size_t kMostTold = 1'000;

constexpr std::string_view kGit = ".git";
constexpr std::string_view kInGit = ".git/";
constexpr std::string_view kGitConfig = ".git/config";
constexpr std::string_view kGitHooks = ".git/hooks";

class Finder {
 public:
  Finder(const Policy& policy, const Mount& mount, const std::string& home)
      : policy_(policy), mount_(mount), home_(home) {}

  ProtectedFiles Find() {
    const std::vector<std::string> patterns = policy::ProtectedNames(policy_);
    for (const std::string& pattern : patterns) Expand(pattern, "", pattern);
    if (std::ranges::any_of(patterns, [](const std::string& p) { return p == kGit || p.starts_with(kInGit); })) {
      FollowGit(patterns);
    }
    for (const ProtectedFile& file : named_) {
      // A pattern matches what nobody meant, as hooks/hooks; that counts only where it is there.
      if (file.status.kind != sys::FileKind::kAbsent || !IsPattern(file.pattern)) meant_.insert(file.name);
    }
    for (const auto* files : {&named_, &led_to_}) {
      for (const ProtectedFile& file : *files) Sort(file, *files);
    }
    return std::move(found_);
  }

 private:
  ProtectedFile At(const std::string& name, const std::string& pattern) const {
    ProtectedFile file{.name = name,
                       .pattern = pattern,
                       .source = mount_.source + (name.empty() ? "" : "/") + name,
                       .target = mount_.target + (name.empty() ? "" : "/") + name};
    file.status = sys::LinkStatus(file.source);
    return file;
  }

  // Names of the list in .git count wherever git on the host, called in the mount, takes the same from.
  void FollowGit(const std::vector<std::string>& patterns) {
    const GitPlaces git = FindGitPlaces(mount_.source, home_);
    for (const std::string& pattern : patterns) {
      if (pattern == kGit) {
        for (const std::string& dot : git.dots) Name(At(dot, pattern));
      }
      if (!pattern.starts_with(kInGit)) continue;
      for (const std::string& repository : git.repositories) {
        if (repository != kGit) Expand(pattern, repository, std::string_view(pattern).substr(kInGit.size()));
      }
      const auto lead = [&](const std::set<std::string>& names) {
        for (const std::string& name : names) led_to_.push_back(At(name, pattern));
      };
      if (pattern == kGitConfig) lead(git.configs);
      if (pattern == kGitHooks) lead(git.hooks);
    }
    for (const std::string& name : git.unsearched) {
      Add(found_.unsearched, At(name, *std::ranges::find_if(patterns, [](const std::string& p) {
                                  return p == kGit || p.starts_with(kInGit);
                                })));
    }
  }

  // SECURITY: what is kept is bounded, since a guest may have made all of it. Of a name that is not there, and that
  // only a pattern has, no more is of interest than a link on the way to it.
  void Name(ProtectedFile file) {
    const bool guessed = file.status.kind == sys::FileKind::kAbsent && IsPattern(file.pattern);
    if (guessed && FirstOddPart(file).status.kind != sys::FileKind::kSymlink) return;
    named_.push_back(std::move(file));
  }

  // Collects all names that a pattern stands for on the host now; without a pattern in it, the name itself.
  void Expand(const std::string& pattern, const std::string& done, std::string_view rest) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const auto go_on = [&](std::string_view name) {
      const std::string path = done.empty() ? std::string(name) : done + "/" + std::string(name);
      if (++looked_ > kMostNames || named_.size() >= kMostFound) return Add(found_.unsearched, At("", pattern));
      if (rest.empty()) {
        Name(At(path, pattern));
      } else {
        Expand(pattern, path, rest);
      }
    };
    if (!IsPattern(part)) return go_on(part);
    const ProtectedFile directory = At(done, pattern);
    if (directory.status.kind != sys::FileKind::kDirectory) return;
    const auto entries = sys::ListDirectory(directory.source, kMostEntries);
    if (!entries) return Add(found_.unsearched, directory);
    if (part == kAnyDepth && !rest.empty()) {
      Expand(pattern, done, rest);
      rest = std::string_view(pattern).substr(pattern.size() - rest.size() - part.size() - 1);  // Itself once more.
      for (const std::string& entry : *entries) {
        if (At((done.empty() ? "" : done + "/") + entry, pattern).status.kind == sys::FileKind::kDirectory)
          go_on(entry);
      }
      return;
    }
    for (const std::string& entry : *entries) {
      if (Matches(part, entry)) go_on(entry);
    }
  }

  // The first part of the way, the last one included, that is not a directory.
  ProtectedFile FirstOddPart(const ProtectedFile& file) const {
    const std::string& name = file.name;
    for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
      ProtectedFile part = At(name.substr(0, slash), file.pattern);
      if (part.status.kind != sys::FileKind::kDirectory) return part;
    }
    return file;
  }

  bool IsInAnotherMount(const std::string& target) const {
    return std::ranges::any_of(policy_.files.mounts, [&](const Mount& other) {
      return other.target.size() > mount_.target.size() && sys::IsWithin(target, other.target);
    });
  }
  bool HoldsNamed(const std::string& name) const {
    const auto below = meant_.lower_bound(name + "/");
    return below != meant_.end() && below->starts_with(name + "/");
  }

  void Add(std::vector<ProtectedFile>& to, const ProtectedFile& file) {
    if (added_.emplace(&to, file.name, file.pattern).second) to.push_back(file);
  }

  void Sort(const ProtectedFile& file, const std::vector<ProtectedFile>& from) {
    if (IsInAnotherMount(file.target)) return;
    const ProtectedFile odd = FirstOddPart(file);
    if (odd.status.kind == sys::FileKind::kSymlink) return Add(found_.links, odd);
    if (odd.name != file.name || file.status.kind == sys::FileKind::kAbsent) return;
    const bool whole = !file.name.empty() && (file.status.kind != sys::FileKind::kDirectory || !HoldsNamed(file.name));
    if (!whole && &from == &led_to_) return Add(found_.mixed, file);
    if (whole && sorted_.insert(file.name).second) Add(found_.present, file);
  }

  const Policy& policy_;
  const Mount& mount_;
  const std::string& home_;
  std::size_t looked_ = 0;
  std::vector<ProtectedFile> named_;
  std::vector<ProtectedFile> led_to_;  // By git's configuration, which says what is in them.
  std::set<std::string> meant_;        // Of those named.
  std::set<std::string> sorted_;
  std::set<std::tuple<const void*, std::string, std::string>> added_;
  ProtectedFiles found_;
};

}  // namespace

std::vector<Mount> ShownBy(const Mount& mount, const Policy& policy) {
  const auto is_writable = [](const Mount& m) {
    return m.access == Access::kReadWrite && sys::Status(m.source).kind == sys::FileKind::kDirectory;
  };
  if (!is_writable(mount)) return {};
  std::vector<Mount> shown = {mount};
  for (const Mount& other : policy.files.mounts) {
    if (other.source == mount.source || !sys::IsWithin(other.source, mount.source) || !is_writable(other)) continue;
    const std::string below = other.source.substr(mount.source == "/" ? 0 : mount.source.size());
    shown.push_back({other.source, mount.target + below, Access::kReadWrite});
    if (other.target == shown.back().target) shown.pop_back();
  }
  return shown;
}

ProtectedFiles FindProtected(const Policy& policy, const Mount& mount, const std::string& home) {
  return Finder(policy, mount, home).Find();
}

OtherNames FindOtherNames(const ProtectedFile& file) {
  namespace fs = std::filesystem;
  if (file.status.kind != sys::FileKind::kDirectory)
    return file.status.names > 1 ? OtherNames::kSome : OtherNames::kNone;
  std::size_t seen = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(file.source, error), end; !error && entry != end;
       entry.increment(error)) {
    if (++seen > kMostEntries) return OtherNames::kUnsearched;
    const sys::FileStatus status = sys::LinkStatus(entry->path());
    if (status.kind != sys::FileKind::kDirectory && status.names > 1) return OtherNames::kSome;
  }
  return error ? OtherNames::kUnsearched : OtherNames::kNone;
}

std::vector<Guarded> FindGuarded(const Policy& policy, const std::string& home) {
  std::vector<Guarded> all;
  for (const Mount& mount : policy.files.mounts) {
    for (const Mount& shown : ShownBy(mount, policy)) {
      const ProtectedFiles found = FindProtected(policy, shown, home);
      for (const auto* files : {&found.present, &found.links, &found.mixed, &found.unsearched}) {
        for (const ProtectedFile& file : *files) {
          all.push_back({file.target, file.source, file.status.device, file.status.inode});
        }
      }
    }
  }
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

std::vector<std::string> FindAppeared(const Policy& policy, const CompiledPlan& plan, std::string_view uncovered) {
  std::vector<std::string> paths;
  if (!plan.protects) return paths;
  std::vector<Guarded> missing;
  const auto kept = [&](const Guarded& file) { return file.target != uncovered; };
  std::vector<Guarded> guarded;
  std::ranges::copy_if(plan.guarded, std::back_inserter(guarded), kept);
  std::ranges::set_difference(FindGuarded(policy, plan.home), guarded, std::back_inserter(missing));
  for (Guarded& file : missing) paths.push_back(std::move(file.target));
  const auto depth = [](const std::string& path) { return std::ranges::count(path, '/'); };
  while (paths.size() > kMostTold) {
    const auto deepest = depth(*std::ranges::max_element(paths, {}, depth));
    for (std::string& path : paths) {
      if (depth(path) == deepest) path.resize(path.rfind('/'));
    }
    std::ranges::sort(paths);
    paths.erase(std::ranges::unique(paths).begin(), paths.end());
  }
  return paths;
}

}  // namespace belljar::plan
