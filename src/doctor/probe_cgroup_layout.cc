#include <algorithm>

#include "doctor/probe_cgroup.h"
#include "sys/mount_table.h"

namespace belljar::doctor {
namespace {

struct Mount {
  bool v2 = false;
  std::vector<std::string> options;
  std::string root;   // which part of the hierarchy is mounted
  std::string point;  // where
};

std::vector<Mount> ParseMounts(std::string_view mountinfo) {
  std::vector<Mount> mounts;
  for (const sys::TableMount& mount : sys::ParseMountTable(mountinfo)) {
    if (mount.type != "cgroup" && mount.type != "cgroup2") continue;
    mounts.push_back({.v2 = mount.type == "cgroup2",
                      .options = sys::Split(mount.options, ','),
                      .root = mount.root,
                      .point = mount.point});
  }
  return mounts;
}

std::optional<std::string> OwnDirectory(const Mount& mount, std::string path) {
  if (path == "/..") return std::nullopt;
  if (path.starts_with("/../")) return std::nullopt;
  if (mount.root != "/") {
    // Within a container with the host's cgroup namespace only our own part is mounted.
    if (path != mount.root && !path.starts_with(mount.root + "/")) return std::nullopt;
    path.erase(0, mount.root.size());
  }
  return path == "/" || path.empty() ? mount.point : mount.point + path;
}

bool Serves(const Mount& mount, const std::vector<std::string>& controllers) {
  if (controllers.empty()) return mount.v2;
  return !mount.v2 && std::ranges::find(mount.options, controllers.front()) != mount.options.end();
}

}  // namespace

std::vector<CgroupHierarchy> ParseCgroups(std::string_view mountinfo, std::string_view self_cgroup) {
  const std::vector<Mount> mounts = ParseMounts(mountinfo);
  std::vector<CgroupHierarchy> found;
  for (const std::string& line : sys::Split(self_cgroup, '\n')) {
    // "4:memory,other:/path"; for v2 "0::/path".
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::vector<std::string> controllers = sys::Split(line.substr(first + 1, second - first - 1), ',');
    for (const Mount& mount : mounts) {
      if (!Serves(mount, controllers)) continue;
      if (std::optional<std::string> own = OwnDirectory(mount, line.substr(second + 1))) {
        found.push_back({.v2 = mount.v2, .controllers = controllers, .top = mount.point, .own = *own});
        break;
      }
    }
  }
  return found;
}

std::string_view CgroupKind(const std::vector<CgroupHierarchy>& hierarchies) {
  const bool v2 = std::ranges::any_of(hierarchies, &CgroupHierarchy::v2);
  const bool v1 = std::ranges::any_of(hierarchies, [](const CgroupHierarchy& hierarchy) {
    // systemd keeps a v1 tree without any controller on some v2 systems; it limits nothing.
    return !hierarchy.v2 && !hierarchy.controllers.front().starts_with("name=");
  });
  return v1 && v2 ? "hybrid" : v1 ? "v1" : v2 ? "v2" : "none";
}

}  // namespace belljar::doctor
