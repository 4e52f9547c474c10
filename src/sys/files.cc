#include "sys/files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <ctime>
#include <memory>

#include "base/unique_fd.h"

namespace belljar::sys {
namespace {

FileStatus Convert(const struct stat& status) {
  FileStatus result{.kind = FileKind::kOther, .uid = status.st_uid, .gid = status.st_gid, .mode = status.st_mode};
  if (S_ISREG(status.st_mode)) result.kind = FileKind::kFile;
  if (S_ISDIR(status.st_mode)) result.kind = FileKind::kDirectory;
  if (S_ISLNK(status.st_mode)) result.kind = FileKind::kSymlink;
  return result;
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

std::optional<std::string> ReadSmallFile(const std::string& path, std::size_t limit) {
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
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
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
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
