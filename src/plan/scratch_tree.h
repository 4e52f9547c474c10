// plan/scratch_tree.h: for tests: a directory of their own on the host, gone with the object.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace belljar::plan {

class ScratchTree {
 public:
  ScratchTree() {
    char path[] = "/tmp/belljar-test-XXXXXX";
    if (::mkdtemp(path) == nullptr) std::abort();
    root_ = path;
  }
  ScratchTree(const ScratchTree&) = delete;
  ScratchTree& operator=(const ScratchTree&) = delete;
  ~ScratchTree() { std::filesystem::remove_all(root_); }

 protected:
  void Write(const std::string& name, const std::string& text = "x") const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }

  std::filesystem::path root_;
};

}  // namespace belljar::plan
