// plan/file_view.h: the guest's file view while it is put together: what both its own places (root.cc) and the policy's
// mounts (mounts.cc) are made with.
#pragma once

#include <linux/mount.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/hidden.h"
#include "plan/sections.h"
#include "sys/files.h"

namespace belljar::plan {

inline constexpr std::uint64_t kReadOnlyTree = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
inline constexpr std::uint64_t kWritableTree = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
inline constexpr char kMaskSource[] = "/dev/.hidden";

enum class Place : std::uint8_t {
  kOwn,    ///< In the new root itself.
  kMount,  ///< Below a mount of the policy's.
};

class FileView {
 public:
  FileView(Draft& draft, std::vector<std::string> kernel_mounts)
      : draft_(draft), builder_(draft.builder), kernel_mounts_(std::move(kernel_mounts)) {}

  void MakeParents(std::string_view path) {
    for (std::size_t slash = path.find('/', 1); slash != std::string_view::npos; slash = path.find('/', slash + 1)) {
      MakeDirectory(path.substr(0, slash));
    }
  }
  void MakeDirectory(std::string_view path) {
    if (std::ranges::find(made_, path) != made_.end()) return;
    made_.emplace_back(path);
    builder_.Add(Op::kDirectory, {.text = path, .value = 0755});
  }
  // SECURITY: on the way to what the policy or a link names there may be a link of the new root, which would be
  // followed on the host.
  void MakeParentsGuarded(std::string_view path) {
    for (std::size_t slash = path.find('/', 1); slash != std::string_view::npos; slash = path.find('/', slash + 1)) {
      const std::string_view parent = path.substr(0, slash);
      if (std::ranges::find(made_, parent) != made_.end()) continue;
      made_.emplace_back(parent);
      builder_.Add(Op::kMountPoint,
                   {.text = parent, .value = 0, .more_value = static_cast<std::uint64_t>(Reach::kGuarded)});
    }
  }
  void AddSymlink(std::string_view path, std::string_view target, Reach reach) {
    links_.emplace_back(path, target);
    builder_.Add(Op::kSymlink, {.text = path, .more = target, .more_value = static_cast<std::uint64_t>(reach)});
  }
  void BindTree(const std::string& source, const std::string& target, std::uint64_t attributes, sys::FileKind kind,
                Reach reach = Reach::kDirect, Place place = Place::kOwn, int slot = -1) {
    const auto how = static_cast<std::uint64_t>(reach);
    const std::uint64_t is_file = kind == sys::FileKind::kDirectory ? 0 : 1;
    // Below another mount nothing is made: that would be on the host, and a guest's link could lead it anywhere.
    if (place == Place::kOwn) {
      if (reach == Reach::kGuarded) MakeParentsGuarded(target);
      if (reach == Reach::kDirect) MakeParents(target);
      builder_.Add(Op::kMountPoint, {.text = target, .value = is_file, .more_value = how});
    }
    builder_.Add(Op::kBind, {.text = target,
                             .more = source,
                             .value = attributes,
                             .more_value = how,
                             .slot = slot,
                             .covers = place == Place::kMount});
    has_covers_ = has_covers_ || place == Place::kMount;
    bound_.push_back({source, target});
  }

  void System();
  void Etc();
  void Devices();
  void Proc();
  void Scratch();
  std::expected<void, CompileError> Mounts();
  void HideKernelMounts();
  /// Mounts on what is the host's, which the host can take away.
  bool has_covers() const { return has_covers_; }

 private:
  std::expected<void, CompileError> Protect(const Mount& mount, int slot);
  std::expected<void, CompileError> HideNamed();
  std::expected<void, CompileError> CheckHidden(const std::string& path) const;
  std::expected<void, CompileError> CheckWay(const std::string& pattern) const;
  void HoldFast(const Mount& outer, std::string_view target, int slot);
  void Hide(const std::string& path, Cover cover) {
    builder_.Add(Op::kMask,
                 {.text = path, .more = kMaskSource, .value = static_cast<std::uint64_t>(cover), .covers = true});
    has_covers_ = true;
  }

  Draft& draft_;
  Builder& builder_;
  std::vector<std::string> made_;
  std::vector<std::string> held_;
  std::vector<std::pair<std::string, std::string>> links_;
  std::vector<Shown> bound_;  ///< In the order in which they are mounted.
  std::vector<std::string> kernel_mounts_;
  bool has_covers_ = false;
};

/// An error of the caller's.
CompileError Mistake(std::string step, std::string message, std::string hint);
/// A source must be there and be what it is called: a link in its path may be an earlier guest's. `kernel` are the
/// host's mounts of kernel filesystems.
std::expected<void, CompileError> CheckSource(const Mount& mount, Form form, std::vector<std::string> kernel);

}  // namespace belljar::plan
