#include "plan/protect.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "policy/protect.h"

namespace belljar::plan {
namespace {

constexpr std::size_t kMostEntries = 10'000;  // Of a directory that a pattern is looked for in.
constexpr std::size_t kMostNames = 262'144;   // All patterns together.

bool IsPattern(std::string_view part) { return part.find_first_of("*?[") != std::string_view::npos; }

class Finder {
 public:
  Finder(const Policy& policy, const Mount& mount) : policy_(policy), mount_(mount) {}

  ProtectedFiles Find() {
    for (const std::string& pattern : policy::ProtectedNames(policy_)) Expand(pattern, "", pattern);
    for (const ProtectedFile& file : named_) {
      names_.insert(file.name);
      // A pattern matches what nobody meant, as hooks/hooks; that counts only where it is there.
      if (file.kind != sys::FileKind::kAbsent || !IsPattern(file.pattern)) meant_.insert(file.name);
    }
    for (const ProtectedFile& file : named_) Sort(file);
    return std::move(found_);
  }

 private:
  ProtectedFile At(const std::string& name, const std::string& pattern) const {
    ProtectedFile file{.name = name,
                       .pattern = pattern,
                       .source = mount_.source + (name.empty() ? "" : "/") + name,
                       .target = mount_.target + (name.empty() ? "" : "/") + name};
    file.kind = sys::LinkStatus(file.source).kind;
    return file;
  }

  // Collects all names that a pattern stands for on the host now; without a pattern in it, the name itself.
  void Expand(const std::string& pattern, const std::string& done, std::string_view rest) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const auto go_on = [&](std::string_view name) {
      const std::string path = done.empty() ? std::string(name) : done + "/" + std::string(name);
      if (named_.size() >= kMostNames) return Add(found_.unsearched, At("", pattern));
      if (rest.empty()) {
        named_.push_back(At(path, pattern));
      } else {
        Expand(pattern, path, rest);
      }
    };
    if (!IsPattern(part)) return go_on(part);
    const ProtectedFile directory = At(done, pattern);
    if (directory.kind != sys::FileKind::kDirectory) return;
    const auto entries = sys::ListDirectory(directory.source, kMostEntries);
    if (!entries) return Add(found_.unsearched, directory);
    for (const std::string& entry : *entries) {
      if (::fnmatch(std::string(part).c_str(), entry.c_str(), 0) == 0) go_on(entry);
    }
  }

  // The first part of the way, the last one included, that is not a directory.
  ProtectedFile FirstOddPart(const ProtectedFile& file) const {
    const std::string& name = file.name;
    for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
      ProtectedFile part = At(name.substr(0, slash), file.pattern);
      if (part.kind != sys::FileKind::kDirectory) return part;
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

  void Sort(const ProtectedFile& file) {
    if (IsInAnotherMount(file.target)) return;
    const ProtectedFile odd = FirstOddPart(file);
    if (odd.kind == sys::FileKind::kSymlink) return Add(found_.links, odd);
    if (odd.name != file.name) {
      // Below a file nothing is, unless the guest removes it, which it can't do with one that is protected itself.
      if (odd.kind == sys::FileKind::kAbsent || !names_.contains(odd.name)) Add(found_.absent, file);
    } else if (file.kind == sys::FileKind::kAbsent) {
      if (!HoldsNamed(file.name)) Add(found_.absent, file);
    } else if (file.kind != sys::FileKind::kDirectory || !HoldsNamed(file.name)) {
      Add(found_.present, file);
    }
  }

  const Policy& policy_;
  const Mount& mount_;
  std::vector<ProtectedFile> named_;
  std::set<std::string> names_, meant_;  // Of those.
  std::set<std::tuple<const void*, std::string, std::string>> added_;
  ProtectedFiles found_;
};

}  // namespace

ProtectedFiles FindProtected(const Policy& policy, const Mount& mount) { return Finder(policy, mount).Find(); }

}  // namespace belljar::plan
