#include "sys/files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>

#include "base/unique_fd.h"

namespace belljar::sys {
namespace {

FileStatus Convert(const struct stat& status) {
  FileStatus result{.kind = FileKind::kOther,
                    .uid = status.st_uid,
                    .gid = status.st_gid,
                    .mode = status.st_mode,
                    .device = status.st_dev,
                    .inode = status.st_ino,
                    .names = status.st_nlink};
  if (S_ISREG(status.st_mode)) result.kind = FileKind::kFile;
  if (S_ISDIR(status.st_mode)) result.kind = FileKind::kDirectory;
  if (S_ISLNK(status.st_mode)) result.kind = FileKind::kSymlink;
  return result;
}

// SECURITY: not by its name before it is known to be a file. A pipe that somebody put there would never end, and one
// whose lock a guest holds (by splice) would not even open: not for those who want no waiting, and not for SIGKILL.
base::UniqueFd OpenRegular(const std::string& path) {
  constexpr int kRead = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  if (path.starts_with("/proc/")) return base::UniqueFd(::open(path.c_str(), kRead));  // Nobody puts anything there.
  const base::UniqueFd found(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat status{};
  if (!found.valid() || ::fstat(found.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return base::UniqueFd(::open(("/proc/self/fd/" + std::to_string(found.get())).c_str(), kRead));
}

}  // namespace

FileStatus Status(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? Convert(status) : FileStatus{};
}

FileStatus LinkStatus(const std::string& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 ? Convert(status) : FileStatus{};
}

std::optional<FileStatus> StatusWithoutLinks(const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const base::UniqueFd fd(static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
  struct stat status{};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) return std::nullopt;
  return Convert(status);
}

std::optional<std::string> ReadLink(const std::string& path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  if (length < 0) return std::nullopt;
  return std::string(target.data(), static_cast<std::size_t>(length));
}

std::optional<std::string> ReadLinkInRoot(int root, const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS;
  const base::UniqueFd fd(static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how)));
  if (!fd.valid()) return std::nullopt;
  std::array<char, PATH_MAX> target{};
  const ssize_t length = ::readlinkat(fd.get(), "", target.data(), target.size());
  if (length < 0) return std::nullopt;
  return std::string(target.data(), static_cast<std::size_t>(length));
}

std::optional<std::string> RealPath(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  if (real == nullptr) return std::nullopt;
  return std::string(real.get());
}

std::optional<Trail> Follow(const std::string& path) {
  constexpr std::size_t kMostLinks = 40;  // The kernel's own bound, path_resolution(7).
  Trail trail;
  std::string rest = path;  // What is still to be walked, from `trail.end` on, which is empty for the root.
  if (!rest.starts_with('/')) rest.insert(0, "/").insert(0, CurrentDirectory());
  while (!rest.empty()) {
    const std::size_t slash = rest.find('/');
    const std::string part = rest.substr(0, slash);
    rest.erase(0, slash == std::string::npos ? rest.size() : slash + 1);
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      trail.end.resize(trail.end.empty() ? 0 : trail.end.rfind('/'));
      continue;
    }
    std::string next = std::string(trail.end).append("/").append(part);
    const FileKind kind = LinkStatus(next).kind;
    if (kind == FileKind::kAbsent) return std::nullopt;
    if (kind != FileKind::kSymlink) {
      if (!rest.empty() && kind != FileKind::kDirectory) return std::nullopt;
      trail.end = std::move(next);
      continue;
    }
    auto target = ReadLink(next);
    if (!target || target->empty() || trail.links.size() == kMostLinks) return std::nullopt;
    if (target->starts_with('/')) trail.end.clear();
    rest = std::string(*target).append("/").append(rest);
    trail.links.push_back({.at = std::move(next), .target = std::move(*target)});
  }
  if (trail.end.empty()) trail.end.push_back('/');
  return trail;
}

std::optional<std::vector<std::string>> ListDirectory(const std::string& path, std::size_t most) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    if (names.size() == most) return std::nullopt;
    names.push_back(entry->path().filename());
  }
  if (error) return std::nullopt;
  return names;
}

std::optional<std::string> ReadSmallFile(const std::string& path, std::size_t limit) {
  const base::UniqueFd fd = OpenRegular(path);
  if (!fd.valid()) return std::nullopt;
  // Most files read here are a few bytes: no buffer of the limit's size.
  std::string text;
  [[gnu::uninitialized]] char part[16384];
  for (;;) {
    const ssize_t got = ::read(fd.get(), part, sizeof part);
    if (got < 0) return std::nullopt;
    if (got == 0) return text;
    text.append(part, static_cast<std::size_t>(got));
    if (text.size() > limit) return std::nullopt;
  }
}

std::string ReadHead(const std::string& path, std::size_t limit) {
  const base::UniqueFd fd = OpenRegular(path);
  std::string text(limit, '\0');
  const ssize_t got = fd.valid() ? ::read(fd.get(), text.data(), text.size()) : 0;
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

bool IsReadable(const std::string& path) {
  const bool directory = Status(path).kind == FileKind::kDirectory;
  return ::access(path.c_str(), directory ? R_OK | X_OK : R_OK) == 0;
}

bool IsWritable(const std::string& path) {
  const bool directory = Status(path).kind == FileKind::kDirectory;
  return ::access(path.c_str(), directory ? W_OK | X_OK : W_OK) == 0;
}

bool HasAccessList(const std::string& path) {
  return ::lgetxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) > 0;
}

bool IsExecutable(const std::string& path) {
  return Status(path).kind == FileKind::kFile && ::access(path.c_str(), X_OK) == 0;
}

std::optional<std::uint64_t> BirthNs(const std::string& path) {
  struct statx status{};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BTIME, &status) != 0) return std::nullopt;
  if ((status.stx_mask & STATX_BTIME) == 0) return std::nullopt;
  return static_cast<std::uint64_t>(status.stx_btime.tv_sec) * 1'000'000'000 + status.stx_btime.tv_nsec;
}

std::uint64_t FileClockNs() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

std::string FindOnPath(const char* name) {
  const char* path = ::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string file = std::string(rest.substr(0, end)) + "/" + name;
    rest.remove_prefix(std::min(end + 1, rest.size()));
    // Relative entries would let the current directory choose what is run.
    struct stat info{};
    if (file.front() == '/' && ::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        ::access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return {};
}

std::string CurrentDirectory() {
  std::array<char, PATH_MAX> path{};
  return ::getcwd(path.data(), path.size()) == nullptr ? "/" : path.data();
}

bool IsWithin(std::string_view path, std::string_view directory) {
  if (directory == "/") return path.starts_with('/');
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

std::string Normalize(std::string_view path, std::string_view base) {
  std::string joined;
  if (!path.starts_with('/')) joined.append(base).push_back('/');
  joined.append(path);
  std::string result;
  for (std::size_t at = 0; at < joined.size();) {
    const std::size_t end = std::min(joined.find('/', at), joined.size());
    const std::string_view part = std::string_view(joined).substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      result.resize(result.empty() ? 0 : result.rfind('/'));
      continue;
    }
    result.append("/").append(part);
  }
  return result.empty() ? "/" : result;
}

}  // namespace belljar::sys
