#include "plan/toolchain.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "sys/files.h"

namespace belljar::plan {
namespace {

using sys::FileKind;

std::string Parent(std::string_view path) { return std::string(path.substr(0, path.rfind('/'))); }

// What is in a virtual environment of venv, virtualenv, uv or pipx. One that was made in a project's own directory
// shares it with the project, which is not handed over.
constexpr std::array<std::string_view, 20> kOfAnEnvironment = {
    "bin",     "include",    "lib",          "lib32",    "lib64",
    "libexec", "share",      "etc",          "man",      "local",
    "src",     "pyvenv.cfg", ".gitignore",   ".lock",    ".Python",
    "doc",     "docs",       "CACHEDIR.TAG", "activate", "pip-selfcheck.json",
};
constexpr std::array<std::string_view, 2> kOfPipx = {"pipx_metadata.json", "pipx_shared.pth"};

// Installations have many shapes, but none of them has what marks somebody's work or settings.
constexpr std::array<std::string_view, 12> kForeign = {".git",  ".hg",     ".svn",         ".env",
                                                       ".ssh",  ".gnupg",  ".aws",         ".config",
                                                       ".kube", ".docker", "node_modules", "package.json"};

bool IsKind(const std::string& path, FileKind kind) { return sys::LinkStatus(path).kind == kind; }

// A Python that was installed there, not one that an environment borrows: it has its library beside it.
bool HasPython(const std::string& prefix) {
  const auto python = sys::ReadLink(prefix + "/bin/python3");
  if (!python || !python->starts_with("python3.") || python->contains('/')) return false;
  return IsKind(prefix + "/bin/" + *python, FileKind::kFile) &&
         IsKind(prefix + "/lib/" + *python + "/os.py", FileKind::kFile);
}

constexpr std::string_view kEnvironment = "Python virtual environment";

std::optional<std::string> KindOf(const std::string& prefix) {
  if (IsKind(prefix + "/pyvenv.cfg", FileKind::kFile)) return std::string(kEnvironment);
  if (IsKind(prefix + "/conda-meta", FileKind::kDirectory)) return "conda environment";
  if (IsKind(prefix + "/include/node", FileKind::kDirectory)) return "Node.js";
  if (IsKind(prefix + "/lib/rustlib", FileKind::kDirectory)) return "Rust toolchain";
  if (IsKind(prefix + "/lib/modules", FileKind::kFile) || IsKind(prefix + "/lib/jvm.cfg", FileKind::kFile)) {
    return "JDK";
  }
  if (IsKind(prefix + "/pkg/tool", FileKind::kDirectory)) return "Go toolchain";
  if (HasPython(prefix)) return "Python";
  return std::nullopt;
}

// The first entry that does not belong there, if any.
std::optional<std::string> Stranger(const std::string& prefix, std::string_view kind) {
  if (kind != kEnvironment) {
    for (const std::string_view name : kForeign) {
      if (sys::LinkStatus(fmt::format("{}/{}", prefix, name)).kind != FileKind::kAbsent) return std::string(name);
    }
    return std::nullopt;
  }
  const auto entries = sys::ListDirectory(prefix, 64);
  if (!entries) return "more than 64 entries, or can't be read";
  for (const std::string& name : *entries) {
    const auto is = [&](std::string_view known) { return name == known; };
    if (std::ranges::none_of(kOfAnEnvironment, is) && std::ranges::none_of(kOfPipx, is)) return name;
  }
  return std::nullopt;
}

// A home directory can hold any of the marks and is never handed over: the caller's, or one of /home. Nor is a hidden
// directory that lies in one: ~/.local has a bin and a lib, and the keys of half the desktop beside them.
bool IsHomes(const std::string& prefix, const std::string& home) {
  const auto depth = std::ranges::count(prefix, '/');
  if (depth < 2 || (depth == 2 && prefix.starts_with("/home/"))) return true;
  const bool hidden = prefix[prefix.rfind('/') + 1] == '.';
  if (hidden && depth == 3 && prefix.starts_with("/home/")) return true;
  if (!home.starts_with('/')) return false;
  for (const std::string& own : {sys::Normalize(home, "/"), sys::RealPath(home).value_or("/")}) {
    if (own != "/" && (sys::IsWithin(own, prefix) || (hidden && Parent(prefix) == own))) return true;
  }
  return false;
}

bool IsOurs(const std::string& path) {
  const sys::FileStatus status = sys::LinkStatus(path);
  // A group of one's own, as most distributions give to each user, has no other members; of any other group who knows.
  const bool own_group = status.gid == 0 || (status.gid == ::getegid() && status.gid == ::geteuid());
  // With an access list these bits are of all whom it names.
  const bool trusted = own_group && ((status.mode & S_IWGRP) == 0 || !sys::HasAccessList(path));
  const mode_t others = trusted ? S_IWOTH : S_IWOTH | S_IWGRP;
  const bool anybodys = (status.mode & others) != 0 && status.kind != FileKind::kSymlink;  // All links say 0777.
  return (status.uid == 0 || status.uid == ::geteuid()) && !anybodys;
}

}  // namespace

std::expected<Toolchain, Withheld> FindToolchain(const Policy& policy, const std::string& home,
                                                 const std::string& program, Named named) {
  const auto none = [](std::string why) { return std::unexpected(Withheld{.why = std::move(why), .prefix = {}}); };
  const std::string directory = Parent(program);
  if (!directory.ends_with("/bin")) return none("it is in no bin directory of a toolchain");
  const std::string prefix = Parent(directory);
  if (IsHomes(prefix, home)) return none(prefix + " is, or holds, a home directory");
  const auto kind = KindOf(prefix);
  if (!kind) return none(prefix + " is no toolchain that Belljar knows");
  const auto withheld = [&](std::string why) {
    return std::unexpected(Withheld{.why = std::move(why), .prefix = prefix});
  };
  if (const auto stranger = Stranger(prefix, *kind)) {
    return withheld(fmt::format("{} holds {}, so it is more than a {}", prefix, *stranger, *kind));
  }
  if (named == Named::kByLink) {
    for (const std::string& path : {prefix, directory, program}) {
      if (!IsOurs(path)) return withheld(path + " belongs to somebody else, or others may write it");
    }
    for (const Mount& mount : policy.files.mounts) {
      if (mount.access == Access::kReadWrite && sys::IsWithin(prefix, mount.source)) {
        return withheld(fmt::format("the guest may write it, through {}", mount.target));
      }
    }
  }
  return Toolchain{.prefix = prefix, .kind = *kind};
}

}  // namespace belljar::plan
