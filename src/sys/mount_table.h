// sys/mount_table.h: the mounts that this process sees.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::sys {

struct TableMount {
  std::string root;     ///< Which part of the filesystem is mounted.
  std::string point;    ///< Where.
  std::string type;     ///< "ext4", "proc" …
  std::string options;  ///< The filesystem's own.
};

/// From the text of /proc/self/mountinfo.
std::vector<TableMount> ParseMountTable(std::string_view mountinfo);

/// Where filesystems are mounted that show the kernel, its settings or its devices instead of files: proc, sysfs,
/// cgroups and the like; without those that lie in others. Nothing when the table can't be read.
std::optional<std::vector<std::string>> KernelMounts();

/// The parts between separators, without empty ones.
std::vector<std::string> Split(std::string_view text, char separator);

}  // namespace belljar::sys
