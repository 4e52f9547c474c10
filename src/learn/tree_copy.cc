#include "learn/tree_copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "jail/sweep.h"
#include "sys/process.h"

namespace belljar::learn {
namespace {

namespace fs = std::filesystem;

class Copier {
 public:
  Copier(const TreeBounds& bounds, const std::function<bool(const std::string&)>& skip)
      : bounds_(bounds), skip_(skip) {}

  Expected<void> Copy(const fs::path& source, const fs::path& target) {
    struct stat status{};
    if (::lstat(source.c_str(), &status) != 0) return Failed(source, errno);
    if (++files_ > bounds_.files) return TooMuch();
    std::error_code error;
    if (S_ISLNK(status.st_mode)) {
      fs::copy_symlink(source, target, error);
    } else if (S_ISDIR(status.st_mode)) {
      if (::mkdir(target.c_str(), 0700) != 0) return Failed(target, errno);
      if (auto done = CopyEntries(source, target); !done) return done;
    } else if (S_ISREG(status.st_mode)) {
      bytes_ += static_cast<std::uint64_t>(status.st_size);
      if (bytes_ > bounds_.bytes) return TooMuch();
      fs::copy_file(source, target, error);
    } else {
      return {};
    }
    if (error) return Failed(source, error.value());
    return CopyAttributes(status, target);
  }

 private:
  Expected<void> CopyEntries(const fs::path& source, const fs::path& target) {
    std::error_code error;
    for (fs::directory_iterator entry(source, error), end; !error && entry != end; entry.increment(error)) {
      if (skip_ && skip_(entry->path().native())) continue;
      if (auto done = Copy(entry->path(), target / entry->path().filename()); !done) return done;
    }
    if (error) return Failed(source, error.value());
    return {};
  }

  static Expected<void> CopyAttributes(const struct stat& status, const fs::path& target) {
    // Only root may give files away; for anybody else they are the caller's own.
    if (::lchown(target.c_str(), status.st_uid, status.st_gid) != 0 && ::geteuid() == 0) return Failed(target, errno);
    if (!S_ISLNK(status.st_mode) && ::chmod(target.c_str(), status.st_mode & 07777) != 0) return Failed(target, errno);
    const timespec times[] = {status.st_atim, status.st_mtim};
    (void)::utimensat(AT_FDCWD, target.c_str(), times, AT_SYMLINK_NOFOLLOW);
    return {};
  }

  static Expected<void> Failed(const fs::path& path, int code) {
    return std::unexpected(sys::ErrnoError(fmt::format("copy {}", path.native()), code));
  }
  Expected<void> TooMuch() const {
    return std::unexpected(
        Error{.step = "make a private copy",
              .message = fmt::format("there is more than {} MiB or {} files", bounds_.bytes >> 20, bounds_.files),
              .hint = "use --no-verify, or an example that writes into a smaller directory"});
  }

  TreeBounds bounds_;
  const std::function<bool(const std::string&)>& skip_;
  std::uint64_t bytes_ = 0;
  std::uint64_t files_ = 0;
};

}  // namespace

Expected<void> CopyTree(const std::string& source, const std::string& target, const TreeBounds& bounds,
                        const std::function<bool(const std::string& path)>& skip) {
  return Copier(bounds, skip).Copy(source, target);
}

Expected<ScratchDirectory> ScratchDirectory::Make() {
  const char* temporary = std::getenv("TMPDIR");
  std::string path = temporary != nullptr && temporary[0] == '/' ? temporary : "/tmp";
  path += "/belljar-learn-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) {
    return std::unexpected(sys::ErrnoError("make " + path, errno, "set TMPDIR to a writable place"));
  }
  return ScratchDirectory(std::move(path));
}

ScratchDirectory::~ScratchDirectory() {
  if (!path_.empty()) RemoveTree(path_);
}

void RemoveTree(const std::string& path) { (void)jail::RemoveTree(path.c_str()); }

}  // namespace belljar::learn
