#include "sys/cgroup_layout.h"

#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "sys/files.h"
#include "sys/proc_text.h"

namespace belljar::sys {
namespace {

constexpr char kMountPoint[] = "/sys/fs/cgroup";

std::string V1Directory(std::string_view own, const char* controller) {
  const std::string path = CgroupPath(own, controller);
  if (path.empty()) return {};
  std::string directory = std::string(kMountPoint) + "/" + controller + (path == "/" ? "" : path);
  // Inside a container the path may be the host's and not exist here; the hierarchy's root is the container's then. One
  // that is there and can't be looked at is no reason to leave it, and the limits that somebody has set on it.
  if (::access(directory.c_str(), F_OK) != 0 && errno == ENOENT)
    directory = std::string(kMountPoint) + "/" + controller;
  return ::access(directory.c_str(), W_OK) == 0 ? directory : std::string();
}

bool HasWord(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || text[at - 1] == ' ';
    const std::size_t end = at + word.size();
    if (begins && (end == text.size() || text[end] == ' ' || text[end] == '\n')) return true;
  }
  return false;
}

// True when children of `directory` have the controllers that limits need, or can be given them.
bool GivesControllers(const std::string& directory) {
  const auto enabled = ReadSmallFile(directory + "/cgroup.subtree_control", 4096).value_or("");
  if (HasWord(enabled, "memory") && HasWord(enabled, "pids")) return true;
  const auto possible = ReadSmallFile(directory + "/cgroup.controllers", 4096).value_or("");
  if (!HasWord(possible, "memory") || !HasWord(possible, "pids")) return false;
  if (::access((directory + "/cgroup.subtree_control").c_str(), W_OK) != 0) return false;
  // A cgroup with processes of its own can't give controllers to children, unless it is the root of the hierarchy.
  return directory == kMountPoint || ReadSmallFile(directory + "/cgroup.procs", 65536).value_or("x").empty();
}

CgroupLayout FindV2(std::string_view own) {
  CgroupLayout layout{.version = CgroupVersion::kV2};
  std::string path = CgroupPath(own, "");
  if (path == "/") path.clear();
  // The nearest ancestor that this caller may use; moving a process needs write access to the common ancestor.
  for (;;) {
    const std::string directory = kMountPoint + path;
    if (::access(directory.c_str(), W_OK) == 0 && ::access((directory + "/cgroup.procs").c_str(), W_OK) == 0 &&
        GivesControllers(directory)) {
      layout.memory = layout.pids = layout.cpu = layout.cpuacct = directory;
      return layout;
    }
    if (path.empty()) break;
    path.resize(path.rfind('/'));
  }
  layout.lack =
      "no cgroup of this user has the memory and pids controllers delegated; start Belljar by "
      "'systemd-run --user --scope -p Delegate=yes belljar …' or as root";
  return layout;
}

}  // namespace

CgroupLayout FindCgroups() {
  struct statfs status{};
  if (::statfs(kMountPoint, &status) != 0) return {.lack = "no cgroups are mounted at /sys/fs/cgroup"};
  const std::string own = ReadSmallFile("/proc/self/cgroup", 65536).value_or("");
  if (status.f_type == CGROUP2_SUPER_MAGIC) return FindV2(own);
  CgroupLayout layout{.version = CgroupVersion::kV1};
  layout.memory = V1Directory(own, "memory");
  layout.pids = V1Directory(own, "pids");
  layout.cpu = V1Directory(own, "cpu");
  layout.cpuacct = V1Directory(own, "cpuacct");
  if (layout.memory.empty() || layout.pids.empty()) {
    layout.lack = "cgroup v1 can't be used by this user: run as root, or have an administrator chown a cgroup";
    if (layout.memory.empty() && layout.pids.empty()) layout.version = CgroupVersion::kNone;
  }
  return layout;
}

}  // namespace belljar::sys
