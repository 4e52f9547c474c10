#include "learn/candidates.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "trace/sensitive.h"

namespace belljar::learn {
namespace {

using plan::Use;
using trace::Access;

constexpr std::size_t kMany = 4;  // So many files of one directory stand for the directory.

std::string Parent(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

// Parts of a path that are one thing to their owner, however many files they are.
constexpr std::string_view kUnits[] = {"/.git/", "/node_modules/", "/site-packages/", "/dist-packages/"};

std::string UnitOf(const std::string& path) {
  std::size_t end = path.size();
  for (const std::string_view unit : kUnits) {
    if (const std::size_t at = path.find(unit); at != std::string::npos) end = std::min(end, at + unit.size() - 1);
  }
  return path.substr(0, end);
}

// Written by the way and never missed.
bool IsCache(const std::string& path) { return (path + "/").contains("/__pycache__/"); }

bool Changes(Use use) { return use == Use::kWrite || use == Use::kCreate || use == Use::kRemove; }

class Finder {
 public:
  explicit Finder(const CandidateScene& scene) : scene_(scene) {}

  void Take(const Access& access) {
    if (access.error != 0) return;
    if (trace::IsNetwork(access.use)) {
      if (access.use == Use::kConnect && access.given != "family 16") {  // Netlink: questions to the kernel.
        Once(found_.addresses, fmt::format("{} {}", access.operation, access.given));
      }
      return;
    }
    const std::string& path = access.resolved;
    if (path.empty() || path == "/" || trace::IsKernelMade(path) || IsCache(path)) return;
    if (!scene_.private_directory.empty() && sys::IsWithin(path, scene_.private_directory)) return;
    const std::string why = fmt::format("{} {}", access.operation, access.given);
    if (Changes(access.use)) return TakeChange(access, why);
    // The name that was used may be a link to something that is shown; the name itself has to be there then.
    const std::string name = access.given.starts_with('/') ? sys::Normalize(access.given, "/") : path;
    if (scene_.shown(path) && scene_.shown(name)) return;
    if (scene_.made_by_run(path)) return;
    const bool directory = scene_.kind(path) == sys::FileKind::kDirectory;
    Mount mount{path, scene_.shown(name) ? path : name, belljar::Access::kReadOnly};
    if (mount.source == mount.target) mount.source = mount.target = UnitOf(path);
    if (Withheld(path, why) || Withheld(mount.target, why)) return;
    if (directory && trace::IsTooBroad(path, scene_.home)) return;  // To look at it is not to need all of it.
    Put(directory ? directories_ : reads_, mount, why);
  }

  Candidates Finish() {
    Collapse(reads_);
    for (auto& [target, grant] : writes_) found_.files.push_back(std::move(grant));
    for (auto& [target, grant] : reads_) found_.files.push_back(std::move(grant));
    for (auto& [target, grant] : directories_) {
      // A mount brings the directories on its way along.
      const bool on_the_way = std::ranges::any_of(
          found_.files, [&](const Grant& file) { return sys::IsWithin(file.mount.target, grant.mount.target); });
      const bool inside = std::ranges::any_of(
          found_.files, [&](const Grant& file) { return sys::IsWithin(grant.mount.target, file.mount.target); });
      if (inside) continue;
      if (on_the_way) grant.why += " (as a whole: it was listed)";
      found_.directories.push_back(std::move(grant));
    }
    DropCovered(found_.files);
    DropCovered(found_.directories);
    return std::move(found_);
  }

 private:
  using Grants = std::map<std::string, Grant>;

  static void Once(std::vector<std::string>& list, std::string text) {
    if (std::ranges::find(list, text) == list.end()) list.push_back(std::move(text));
  }
  static void Put(Grants& grants, const Mount& mount, const std::string& why, bool durable = false) {
    const auto [place, added] = grants.try_emplace(mount.target, Grant{mount, why, durable});
    place->second.durable |= durable;
  }
  bool Withheld(const std::string& path, const std::string& why) {
    if (!trace::HoldsSecrets(path, scene_.home) && !trace::SecretsBelow(path, scene_.home)) return false;
    Once(found_.withheld, fmt::format("{}: holds secrets", why));
    return true;
  }

  // New and vanishing names need their directory, as far up as the run did not make it itself.
  void TakeChange(const Access& access, const std::string& why) {
    const std::string& path = access.resolved;
    if (Withheld(path, why)) return;
    const sys::FileKind kind = scene_.kind(path);
    const bool there = kind != sys::FileKind::kAbsent;
    std::string where = path;
    const bool itself = there && !scene_.made_by_run(path) && access.use == Use::kWrite;
    if (!itself) {
      do {
        where = Parent(where);
      } while (where != "/" && scene_.made_by_run(where));
    }
    if (trace::IsKernelMade(where)) return;
    if (trace::IsSystem(where)) return Once(found_.withheld, fmt::format("{}: the system's files stay read-only", why));
    if (trace::IsTooBroad(where, scene_.home)) {
      // Inside there is a private /tmp to write to.
      if (where == "/tmp" || where == "/var/tmp") return;
      return Once(found_.withheld, fmt::format("{}: {} as a whole is too much to grant", why, where));
    }
    if (Withheld(where, why)) return;
    Put(writes_, {where, where, belljar::Access::kReadWrite}, why, there && access.use != Use::kRemove);
  }

  void Collapse(Grants& grants) const {
    for (bool changed = true; changed;) {
      changed = false;
      std::map<std::string, std::vector<std::string>> by_parent;
      for (const auto& [target, grant] : grants) {
        if (grant.mount.source == target) by_parent[Parent(target)].push_back(target);
      }
      for (const auto& [parent, targets] : by_parent) {
        if (targets.size() < kMany || trace::IsTooBroad(parent, scene_.home) ||
            trace::SecretsBelow(parent, scene_.home)) {
          continue;
        }
        const std::string why = fmt::format("{} of its files, as {}", targets.size(), grants.at(targets[0]).why);
        for (const std::string& target : targets) grants.erase(target);
        grants[parent] = {{parent, parent, belljar::Access::kReadOnly}, why};
        changed = true;
        break;  // The map of parents is out of date.
      }
    }
  }

  const CandidateScene& scene_;
  Grants reads_, writes_, directories_;
  Candidates found_;
};

}  // namespace

Candidates FindCandidates(const std::vector<Access>& accesses, const CandidateScene& scene) {
  Finder finder(scene);
  for (const Access& access : accesses) finder.Take(access);
  return finder.Finish();
}

void DropCovered(std::vector<Grant>& grants) {
  const auto covers = [](const Mount& outer, const Mount& inner) {
    if (outer.target == inner.target || !sys::IsWithin(inner.target, outer.target)) return false;
    if (outer.access == belljar::Access::kReadOnly && inner.access == belljar::Access::kReadWrite) return false;
    return outer.source + inner.target.substr(outer.target.size()) == inner.source;
  };
  std::vector<Grant> kept;
  for (const Grant& grant : grants) {
    const bool same_but_writable = std::ranges::any_of(grants, [&](const Grant& other) {
      return other.mount.target == grant.mount.target && other.mount.access == belljar::Access::kReadWrite &&
             grant.mount.access == belljar::Access::kReadOnly;
    });
    const bool covered =
        std::ranges::any_of(grants, [&](const Grant& other) { return covers(other.mount, grant.mount); });
    if (!covered && !same_but_writable) kept.push_back(grant);
  }
  grants = std::move(kept);
}

}  // namespace belljar::learn
