#include "plan/protect.h"

#include <fnmatch.h>

#include <algorithm>
#include <string_view>

#include "policy/protect.h"

namespace belljar::plan {
namespace {

constexpr std::size_t kMostEntries = 10'000;  // Of a directory that a pattern is looked for in.

bool IsPattern(std::string_view part) { return part.find_first_of("*?[") != std::string_view::npos; }

// All names of the host that a pattern stands for; the pattern itself, as far as it is one, when there is none.
void Expand(const std::string& root, const std::string& done, std::string_view rest, std::vector<std::string>& names) {
  const std::string_view part = rest.substr(0, rest.find('/'));
  rest.remove_prefix(std::min(part.size() + 1, rest.size()));
  const auto go_on = [&](std::string_view name) {
    const std::string path = done.empty() ? std::string(name) : done + "/" + std::string(name);
    if (rest.empty()) {
      names.push_back(path);
    } else {
      Expand(root, path, rest, names);
    }
  };
  if (!IsPattern(part)) return go_on(part);
  const auto entries = sys::ListDirectory(done.empty() ? root : root + "/" + done, kMostEntries);
  if (!entries) return;
  for (const std::string& entry : *entries) {
    if (::fnmatch(std::string(part).c_str(), entry.c_str(), FNM_PERIOD) == 0) go_on(entry);
  }
}

// The first part of the way, the last one included, that is not a directory.
std::string FirstOddPart(const std::string& root, const std::string& name) {
  for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
    if (sys::LinkStatus(root + "/" + name.substr(0, slash)).kind != sys::FileKind::kDirectory) {
      return name.substr(0, slash);
    }
  }
  return name;
}

}  // namespace

ProtectedFiles FindProtected(const Policy& policy, const Mount& mount) {
  std::vector<std::string> names;
  for (const std::string& pattern : policy::ProtectedNames(policy)) Expand(mount.source, "", pattern, names);
  const auto of = [&](const std::string& name) {
    ProtectedFile file{.name = name, .source = mount.source + "/" + name, .target = mount.target + "/" + name};
    file.kind = sys::LinkStatus(file.source).kind;
    return file;
  };
  const auto is_in_another = [&](const std::string& target) {
    return std::ranges::any_of(policy.files.mounts, [&](const Mount& other) {
      return other.target.size() > mount.target.size() && sys::IsWithin(target, other.target);
    });
  };
  const auto holds_others = [&](const std::string& name) {
    return std::ranges::any_of(names, [&](const std::string& other) { return other.starts_with(name + "/"); });
  };
  ProtectedFiles found;
  const auto add = [](std::vector<ProtectedFile>& to, ProtectedFile file) {
    if (std::ranges::find(to, file.name, &ProtectedFile::name) == to.end()) to.push_back(std::move(file));
  };
  for (const std::string& name : names) {
    if (is_in_another(mount.target + "/" + name)) continue;
    ProtectedFile file = of(name);
    // On the way there may be a link too, or a file that is on the list itself.
    if (const std::string odd = FirstOddPart(mount.source, name); odd != name) {
      const ProtectedFile obstacle = of(odd);
      if (obstacle.kind == sys::FileKind::kSymlink) add(found.links, obstacle);
      if (obstacle.kind == sys::FileKind::kAbsent) add(found.absent, file);
      continue;
    }
    if (file.kind == sys::FileKind::kAbsent) {
      if (!holds_others(name)) add(found.absent, file);
      continue;
    }
    if (file.kind == sys::FileKind::kSymlink) {
      add(found.links, file);
      continue;
    }
    if (file.kind == sys::FileKind::kDirectory && holds_others(name)) continue;
    add(found.present, std::move(file));
  }
  return found;
}

}  // namespace belljar::plan
