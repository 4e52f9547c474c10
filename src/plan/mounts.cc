// What the policy mounts, and what a program brings along: each as it is on the host, guarded on the way to it.
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.h"
#include "plan/file_view.h"
#include "plan/hidden.h"
#include "plan/pattern.h"
#include "plan/protect.h"

namespace belljar::plan {
namespace {

// What the kernel shows of the host: no mount brings it inside.
constexpr std::array kKernelTrees = {"/proc", "/sys", "/dev"};

constexpr std::size_t kMostProtected = 4'096;  // In one mount. Each is a mount of its own.

}  // namespace

CompileError Mistake(std::string step, std::string message, std::string hint) {
  return {Fault::kCaller, Error{.step = std::move(step), .message = std::move(message), .hint = std::move(hint)}};
}

std::expected<void, CompileError> CheckSource(const Mount& mount, Form form, std::vector<std::string> kernel) {
  const auto real = sys::RealPath(mount.source);
  if (!real) {
    return std::unexpected(Mistake("mount " + mount.source, "no such file or directory, or it can't be looked at",
                                   "make it first; Belljar creates nothing on the host"));
  }
  if (*real != mount.source) {
    return std::unexpected(Mistake("mount " + mount.source, "it is, or goes through, a link to " + *real,
                                   "write " + *real + " if that is what you mean"));
  }
  kernel.insert(kernel.end(), kKernelTrees.begin(), kKernelTrees.end());
  for (const std::string& tree : kernel) {
    if (sys::IsWithin(*real, tree)) {
      return std::unexpected(Mistake("mount " + mount.source, "nothing of the host's " + tree + " can be mounted",
                                     "the guest has a /proc and /dev of its own"));
    }
    // Where nothing can be mounted nothing can be covered either.
    if (form == Form::kLandlockOnly && sys::IsWithin(tree, *real)) {
      return std::unexpected(
          Mistake("mount " + mount.source, "the kernel shows the host in " + tree, "name the parts that are needed"));
    }
  }
  return {};
}

// SECURITY: what is only on the way to a mount can be moved away with it, and something else put in its place. So each
// directory between a writable mount and a mount inside it becomes a mount of its own, which nobody can move.
void FileView::HoldFast(const Mount& outer, std::string_view target, int slot) {
  if (outer.access != Access::kReadWrite) return;
  for (std::size_t slash = target.find('/', outer.target.size() + 1); slash != std::string_view::npos;
       slash = target.find('/', slash + 1)) {
    const std::string at(target.substr(0, slash));
    if (std::ranges::find(held_, at) != held_.end()) continue;
    held_.push_back(at);
    const std::string source = outer.source + at.substr(outer.target.size());
    BindTree(source, at, kWritableTree, sys::FileKind::kDirectory, Reach::kGuarded, Place::kMount, slot);
    draft_.out.held.push_back(source);
  }
}

// SECURITY: before mounts that lie inside this one, which are the policy's own word about a place in it.
std::expected<void, CompileError> FileView::Protect(const Mount& mount, int slot) {
  const ProtectedFiles files = FindProtected(draft_.request.policy, mount, draft_.out.home);
  const auto refuse = [](const std::vector<ProtectedFile>& those, std::string why) {
    constexpr std::size_t kMostTold = 3;
    std::set<std::string> patterns;
    for (const ProtectedFile& file : those) patterns.insert(base::ShellWord(file.pattern));
    if (patterns.size() > kMostTold) patterns = {"all"};
    return std::unexpected(Mistake("protect " + those.front().source, std::move(why),
                                   fmt::format("give it up with --unprotect {}, or mount another directory",
                                               fmt::join(patterns, " --unprotect "))));
  };
  if (!files.links.empty()) {
    return refuse(files.links, "it is a link, which a guest that may write the directory could replace");
  }
  if (!files.mixed.empty()) {
    return refuse(files.mixed, "git takes hooks from there (core.hooksPath), and a guest has to write in it");
  }
  if (!files.unsearched.empty()) {
    return refuse(files.unsearched, "it holds too many names to look through, or can't be read");
  }
  if (files.present.size() > kMostProtected) {
    return refuse(files.present,
                  fmt::format("with {} others it is more than can be protected one by one", files.present.size() - 1));
  }
  draft_.out.protects = true;
  for (const ProtectedFile& file : files.present) {
    // SECURITY: made by an earlier guest, perhaps, for this one: a cover is over one name.
    const OtherNames others = FindOtherNames(file);
    if (others == OtherNames::kSome) {
      return refuse({file}, "it, or a file in it, has another name (hard link) through which a guest could write it");
    }
    if (others == OtherNames::kUnsearched) draft_.unsearched_paths.push_back(file.target);
  }
  for (const ProtectedFile& file : files.present) HoldFast(mount, file.target, slot);
  for (const ProtectedFile& file : files.present) {
    BindTree(file.source, file.target, kReadOnlyTree, file.status.kind, Reach::kGuarded, Place::kMount, slot);
    draft_.out.guarded.push_back({file.target, file.source, file.status.device, file.status.inode});
    draft_.protected_paths.push_back(file.target);
  }
  std::ranges::sort(draft_.out.guarded);
  return {};
}

std::expected<void, CompileError> FileView::Mounts() {
  const Policy& policy = draft_.request.policy;
  draft_.out.home = draft_.request.caller.Variable("HOME").value_or("");
  for (const Brought& brought : draft_.program.brought) {
    BindTree(brought.path, brought.path, kReadOnlyTree, sys::LinkStatus(brought.path).kind, Reach::kGuarded);
  }
  for (const sys::Link& link : draft_.program.links) {
    MakeParentsGuarded(link.at);
    AddSymlink(link.at, link.target, Reach::kGuarded);
  }
  std::vector<Mount> mounts = policy.files.mounts;
  std::map<std::string, int> slots;  // The id map of each, by its target.
  // Outer before inner, whatever their order in the policy.
  std::ranges::stable_sort(mounts, {}, [](const Mount& m) { return std::ranges::count(m.target, '/'); });
  for (const Mount& mount : mounts) {
    const sys::FileStatus status = sys::Status(mount.source);
    const Mount* outer = nullptr;  // The innermost of those that this one lies in; they are sorted by depth.
    for (const Mount& other : mounts) {
      if (other.target != mount.target && sys::IsWithin(mount.target, other.target)) outer = &other;
    }
    const Place place = outer == nullptr ? Place::kOwn : Place::kMount;
    if (place == Place::kMount) {
      const std::string there = outer->source + mount.target.substr(outer->target.size());
      if (sys::LinkStatus(there).kind != status.kind) {
        return std::unexpected(Mistake("mount " + mount.source + " at " + mount.target,
                                       there + " is not there to mount on, or of another kind", "make it first"));
      }
    }
    int& slot = slots.emplace(mount.target, -1).first->second;
    if (draft_.Privileged() && status.uid != draft_.out.guest_uid) {
      auto& maps = draft_.out.id_maps;
      auto found = std::ranges::find_if(
          maps, [&](const IdMap& m) { return m.file_uid == status.uid && m.file_gid == status.gid; });
      if (found == maps.end()) found = maps.insert(maps.end(), IdMap{status.uid, status.gid});
      slot = kFirstExtraSlot + static_cast<int>(draft_.out.cgroup_paths.size() + (found - maps.begin()));
      if (slot >= kMaxSlots) {
        return std::unexpected(Mistake("mount " + mount.source, "mounts with too many different owners",
                                       "mount their common parent directory"));
      }
    }
    if (outer != nullptr) HoldFast(*outer, mount.target, slots[outer->target]);
    BindTree(mount.source, mount.target, mount.access == Access::kReadWrite ? kWritableTree : kReadOnlyTree,
             status.kind, Reach::kGuarded, place, slot);
    for (const Mount& shown : ShownBy(mount, policy)) {
      if (auto done = Protect(shown, slot); !done) return done;
    }
  }
  return HideNamed();
}

std::expected<void, CompileError> FileView::HideNamed() {
  std::vector<std::string> kernel = kernel_mounts_;
  kernel.insert(kernel.end(), kKernelTrees.begin(), kKernelTrees.end());
  HiddenNames hidden{.trees = bound_, .kernel = std::move(kernel)};
  for (const std::string& name : draft_.request.policy.files.hide) {
    const bool pattern = std::ranges::any_of(Parts(name), IsPattern);
    std::expected<std::vector<std::string>, CompileError> found = std::vector{name};
    if (pattern) {
      if (auto good = CheckWay(name); !good) return good;
      found = FindHidden(name, hidden.trees, hidden.kernel);
      hidden.patterns.push_back(name);
    }
    if (!found) return std::unexpected(found.error());
    if (pattern) hidden.found.insert(hidden.found.end(), found->begin(), found->end());
    for (const std::string& path : *found) {
      if (auto good = CheckHidden(path); !good) return good;
      Hide(path, Cover::kWhatFits);
    }
  }
  if (!hidden.patterns.empty()) draft_.out.hidden = std::move(hidden);
  return {};
}

// A pattern is looked for by real paths: behind a link of the guest's own root it would find nothing.
std::expected<void, CompileError> FileView::CheckWay(const std::string& pattern) const {
  for (const auto& [link, target] : links_) {
    if (!sys::IsWithin(pattern, link)) continue;
    const std::string real = sys::Normalize(target, link.substr(0, link.rfind('/')) + "/");
    return std::unexpected(Mistake("hide " + pattern, link + " is a link to " + real,
                                   "write " + real + pattern.substr(link.size()) + " if that is what you mean"));
  }
  return {};
}

std::expected<void, CompileError> FileView::CheckHidden(const std::string& path) const {
  for (const Mount& mount : draft_.request.policy.files.mounts) {
    if (mount.target == path) {
      return std::unexpected(
          Mistake("hide " + path, "it is mounted and hidden at once", "remove the mount or the hiding"));
    }
    if (mount.access == Access::kReadOnly || !sys::IsWithin(path, mount.target)) continue;
    return std::unexpected(Mistake("hide " + path, mount.target + " is writable, so the guest could move it away",
                                   "mount that part of it read-only, or do not mount it"));
  }
  if (sys::IsWithin(draft_.workdir, path)) {
    return std::unexpected(Mistake("hide " + path, "the workdir is in it", "choose another workdir or hide less"));
  }
  return {};
}

// SECURITY: a directory may have another system's /proc, or the host's own, mounted somewhere in it. Last of all, when
// nothing can bring it back: each place is covered where the mount that shows it in the end has it.
void FileView::HideKernelMounts() {
  for (std::size_t i = 0; i < bound_.size(); ++i) {
    const Shown& bound = bound_[i];
    const std::string source = bound.source == "/" ? "" : bound.source;
    const auto hide = [&](const std::string& at, Cover cover) {
      const std::string path = bound.target + at.substr(source.size());
      const auto covers = [&](const Shown& later) { return sys::IsWithin(path, later.target); };
      if (std::any_of(bound_.begin() + static_cast<std::ptrdiff_t>(i) + 1, bound_.end(), covers)) return;
      Hide(path, cover);
    };
    for (const std::string& at : kernel_mounts_) {
      if (at == bound.source || !sys::IsWithin(at, bound.source)) continue;
      // Under another mount, or in a directory that is closed to this user and so to any guest of it.
      if (sys::LinkStatus(at).kind != sys::FileKind::kAbsent) hide(at, Cover::kPresent);
    }
    if (!source.empty()) continue;
    for (const char* kernel : kKernelTrees) hide(kernel, Cover::kWhatFits);
  }
}

}  // namespace belljar::plan
