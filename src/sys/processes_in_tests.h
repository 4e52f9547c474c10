// sys/processes_in_tests.h: what tests see of this host's processes.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace belljar::sys {

/// Waits for it, for as long as no load explains.
template <typename Condition>
bool Eventually(Condition condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

/// The processes with `word` as one of their arguments.
inline std::vector<pid_t> WithArgument(const std::string& word) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::stringstream text;
    text << '\0' << std::ifstream(entry.path() / "cmdline").rdbuf();
    if (text.str().find('\0' + word + '\0') != std::string::npos) found.push_back(std::stoi(name));
  }
  return found;
}

/// 0 where there is none.
inline pid_t ParentInTests(pid_t pid) {
  pid_t parent = 0;
  std::string word;
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  while (status >> word && word != "PPid:") {
  }
  status >> parent;
  return parent;
}

}  // namespace belljar::sys
