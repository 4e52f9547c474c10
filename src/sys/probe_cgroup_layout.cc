#include <algorithm>

#include "sys/probe_cgroup.h"

namespace belljar::sys {
namespace {

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// mountinfo writes blanks, tabs, newlines and backslashes as \ooo.
std::string Unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

struct Mount {
  bool v2 = false;
  std::vector<std::string> options;
  std::string root;   // which part of the hierarchy is mounted
  std::string point;  // where
};

std::vector<Mount> ParseMounts(std::string_view mountinfo) {
  std::vector<Mount> mounts;
  for (const std::string& line : Split(mountinfo, '\n')) {
    const std::vector<std::string> fields = Split(line, ' ');
    const auto dash = std::ranges::find(fields, "-");
    if (dash - fields.begin() < 6 || fields.end() - dash < 4) continue;
    const std::string& type = dash[1];
    if (type != "cgroup" && type != "cgroup2") continue;
    mounts.push_back({.v2 = type == "cgroup2",
                      .options = Split(dash[3], ','),
                      .root = Unescape(fields[3]),
                      .point = Unescape(fields[4])});
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
  for (const std::string& line : Split(self_cgroup, '\n')) {
    // "4:memory,other:/path"; for v2 "0::/path".
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::vector<std::string> controllers = Split(line.substr(first + 1, second - first - 1), ',');
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

}  // namespace belljar::sys
