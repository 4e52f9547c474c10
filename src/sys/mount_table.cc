#include "sys/mount_table.h"

#include <algorithm>
#include <array>

#include "sys/files.h"

namespace belljar::sys {
namespace {

// No tmpfs: people keep files in it. Devices on one don't work inside, where all is mounted nodev.
constexpr auto kKernelTypes = std::to_array<std::string_view>(
    {"binder",  "binfmt_misc", "bpf",      "cgroup",     "cgroup2",   "configfs",   "cpuset",     "debugfs",
     "devpts",  "devtmpfs",    "efivarfs", "functionfs", "fusectl",   "gadgetfs",   "hugetlbfs",  "mqueue",
     "nfsd",    "nsfs",        "proc",     "pstore",     "resctrl",   "rpc_pipefs", "securityfs", "selinuxfs",
     "smackfs", "sysfs",       "tracefs",  "usbfs",      "fuse.lxcfs"});

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

}  // namespace

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::vector<TableMount> ParseMountTable(std::string_view mountinfo) {
  std::vector<TableMount> mounts;
  for (const std::string& line : Split(mountinfo, '\n')) {
    // "36 35 98:0 /root /point options… - type source options"; the source may be empty.
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const std::vector<std::string> fields = Split(std::string_view(line).substr(0, dash), ' ');
    const std::string_view rest = std::string_view(line).substr(dash + 3);
    const std::size_t type_end = std::min(rest.find(' '), rest.size());
    const std::size_t last = rest.rfind(' ');
    if (fields.size() < 6) continue;
    mounts.push_back({.root = Unescape(fields[3]),
                      .point = Unescape(fields[4]),
                      .type = std::string(rest.substr(0, type_end)),
                      .options = std::string(last == std::string_view::npos ? "" : rest.substr(last + 1))});
  }
  return mounts;
}

std::optional<std::vector<std::string>> KernelMounts() {
  constexpr std::size_t kMost = 16U << 20;
  const auto text = ReadSmallFile("/proc/self/mountinfo", kMost);
  if (!text) return std::nullopt;
  std::vector<std::string> points;
  for (TableMount& mount : ParseMountTable(*text)) {
    if (std::ranges::find(kKernelTypes, mount.type) != kKernelTypes.end()) points.push_back(std::move(mount.point));
  }
  std::ranges::sort(points, {}, [](const std::string& point) { return std::ranges::count(point, '/'); });
  std::vector<std::string> outer;
  for (std::string& point : points) {
    const auto holds = [&](const std::string& other) { return IsWithin(point, other); };
    if (std::ranges::none_of(outer, holds)) outer.push_back(std::move(point));
  }
  return outer;
}

}  // namespace belljar::sys
