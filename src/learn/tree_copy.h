// learn/tree_copy.h: copies of small directory trees, so that an experiment can't change the original.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <belljar/error.h>

namespace belljar::learn {

struct TreeBounds {
  std::uint64_t bytes = 64ULL << 20;
  std::uint64_t files = 20'000;
};

/// Files, directories and links with their owners, modes and times; sockets, pipes and devices are left out. `target`
/// must not exist. What `skip` says yes to is left out with all below it. An error when there is more than `bounds`.
Expected<void> CopyTree(const std::string& source, const std::string& target, const TreeBounds& bounds,
                        const std::function<bool(const std::string& path)>& skip = {});

/// A directory that is gone with its owner, and all in it.
class ScratchDirectory {
 public:
  static Expected<ScratchDirectory> Make();
  ScratchDirectory(ScratchDirectory&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  ~ScratchDirectory();
  const std::string& path() const { return path_; }

 private:
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// Removes a tree below a scratch directory.
void RemoveTree(const std::string& path);

}  // namespace belljar::learn
