// sys/files.h: questions about the host's files, asked by the parent side while it makes a plan.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::sys {

enum class FileKind : unsigned char { kAbsent, kFile, kDirectory, kSymlink, kOther };

struct FileStatus {
  FileKind kind = FileKind::kAbsent;
  uid_t uid = 0;
  gid_t gid = 0;
  mode_t mode = 0;
  dev_t device = 0;
  ino_t inode = 0;
  nlink_t names = 0;  ///< How many it has: hard links.
};

/// Follows symlinks. A path that can't be looked at counts as absent.
FileStatus Status(const std::string& path);
/// Does not follow a symlink at the end of the path.
FileStatus LinkStatus(const std::string& path);
/// Nothing where there is a link anywhere on the way, or nothing at its end.
std::optional<FileStatus> StatusWithoutLinks(const std::string& path);
std::optional<std::string> ReadLink(const std::string& path);
/// The same in another root, given as a descriptor: nothing on the way may be a link, and no path leads out of it.
std::optional<std::string> ReadLinkInRoot(int root, const std::string& path);
/// The path without symlinks, "." and ".."; nothing when it does not exist.
std::optional<std::string> RealPath(const std::string& path);
/// A path followed part by part, as the kernel does it.
struct Link {
  std::string at;  ///< Its real place: no link on the way to it.
  std::string target;
};
struct Trail {
  std::vector<Link> links;  ///< All on the way, in the order in which they were met.
  std::string end;          ///< The real path of what is there in the end.
};
/// Nothing when there is nothing at its end, or more links on the way than the kernel would follow.
std::optional<Trail> Follow(const std::string& path);
/// The names in a directory but "." and ".."; nothing when it can't be read or holds more than `most`.
std::optional<std::vector<std::string>> ListDirectory(const std::string& path, std::size_t most);
/// At most `limit` bytes; nothing when the file can't be read or is larger.
std::optional<std::string> ReadSmallFile(const std::string& path, std::size_t limit);
/// The first bytes of a file, at most `limit`; empty when it can't be read.
std::string ReadHead(const std::string& path, std::size_t limit);
/// True when the caller may read it; a directory also be in it.
bool IsReadable(const std::string& path);
/// True when the caller may change it; of a directory, what is in it.
bool IsWritable(const std::string& path);
/// True when it has a list of more users or groups with rights of their own (POSIX ACL).
bool HasAccessList(const std::string& path);
/// True when this process may execute the file.
bool IsExecutable(const std::string& path);
/// Where a program is on this process's PATH, by its absolute entries alone; empty when it is on none.
std::string FindOnPath(const char* name);
/// When it was made, in nanoseconds since 1970; nothing where that is not known. Links are not followed.
std::optional<std::uint64_t> BirthNs(const std::string& path);
/// The clock that BirthNs goes by; what it says of a file may be up to a tick (10 ms) in the past, as stamps are
/// coarser.
std::uint64_t FileClockNs();
std::string CurrentDirectory();
/// True when `path` is `directory` or below it. Both absolute and normal.
bool IsWithin(std::string_view path, std::string_view directory);
/// Absolute and without "//", "/./", "/../" and a trailing slash, by text alone.
std::string Normalize(std::string_view path, std::string_view base);

}  // namespace belljar::sys
