#include "plan/command.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "sys/files.h"

namespace belljar::plan {
namespace {

constexpr std::string_view kSystemPath = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

std::vector<std::string> SplitPath(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find(':'));
    path.remove_prefix(std::min(part.size() + 1, path.size()));
    if (part.starts_with('/')) parts.emplace_back(part);
  }
  return parts;
}

bool IsSystem(const Policy& policy, std::string_view path) {
  if (policy.files.system == SystemFiles::kNone) return false;
  return std::ranges::any_of(std::initializer_list<std::string_view>{"/usr", "/bin", "/sbin", "/lib", "/lib64"},
                             [&](std::string_view directory) { return sys::IsWithin(path, directory); });
}

bool IsMounted(const Policy& policy, std::string_view path) {
  return std::ranges::any_of(policy.files.mounts, [&](const Mount& m) { return sys::IsWithin(path, m.target); });
}

std::string Parent(std::string_view path) { return std::string(path.substr(0, path.rfind('/'))); }

std::optional<std::string> FindOnHost(const std::string& name, const std::string& caller_path) {
  for (const std::string& directory : SplitPath(caller_path)) {
    std::string candidate = directory + "/" + name;
    if (sys::IsExecutable(candidate)) return candidate;
  }
  return std::nullopt;
}

// pyenv and its kin put shims on PATH that look up the real program by a slow script and the caller's own files. The
// real one is found here instead: by PYENV_VERSION, else by the global version file.
std::optional<std::string> ResolveShim(const std::string& path) {
  const std::string directory = Parent(path);
  if (!directory.ends_with("/shims")) return std::nullopt;
  const std::string root = Parent(directory);
  std::string version;
  if (const char* chosen = std::getenv("PYENV_VERSION"); chosen != nullptr) version = chosen;
  if (version.empty()) version = sys::ReadSmallFile(root + "/version", 256).value_or("");
  version = version.substr(0, version.find_first_of(" \n:"));
  if (version.empty() || version.find('/') != std::string::npos) return std::nullopt;
  std::string real = root + "/versions/" + version + "/bin" + path.substr(directory.size());
  if (!sys::IsExecutable(real)) return std::nullopt;
  return real;
}

// The directory that a program's own files are under, when there is one that is plainly a program's: a home directory
// or /opt as a whole is not handed over for a file in its bin.
std::optional<std::string> Prefix(const std::string& program) {
  const std::string directory = Parent(program);
  if (!directory.ends_with("/bin")) return std::nullopt;
  std::string prefix = Parent(directory);
  for (const char* mark : {"/pyvenv.cfg", "/conda-meta", "/include/node", "/lib/node_modules", "/lib/rustlib",
                           "/lib/jvm.cfg", "/release", "/pkg/tool"}) {
    if (sys::Status(prefix + mark).kind != sys::FileKind::kAbsent) return prefix;
  }
  const auto python = sys::ReadLink(directory + "/python3");
  if (python && python->starts_with("python3.") &&
      sys::Status(prefix + "/lib/" + *python).kind == sys::FileKind::kDirectory) {
    return prefix;
  }
  return std::nullopt;
}

void AddReadOnly(const Policy& policy, Command& command, const std::string& path) {
  if (IsSystem(policy, path) || IsMounted(policy, path)) return;
  if (std::ranges::any_of(command.read_only, [&](const auto& have) { return sys::IsWithin(path, have); })) return;
  command.read_only.push_back(path);
}

// A program outside the system: it, its prefix, and the same for what it links to (a virtual environment's python).
void AddProgram(const Policy& policy, Command& command, const std::string& program) {
  std::string at = program;
  for (int hops = 0; hops < 8; ++hops) {
    if (const auto prefix = Prefix(at)) {
      AddReadOnly(policy, command, *prefix);
      if (hops == 0) command.path = *prefix + "/bin:" + command.path;
    } else {
      AddReadOnly(policy, command, at);
    }
    const auto target = sys::ReadLink(at);
    if (!target) return;
    at = sys::Normalize(*target, Parent(at));
  }
}

}  // namespace

Command ResolveCommand(const Policy& policy, const std::string& argv0, const std::string& caller_path) {
  Command command{.exec_paths = {}, .read_only = {}, .path = std::string(kSystemPath)};
  const bool has_slash = argv0.find('/') != std::string::npos;
  std::optional<std::string> host;
  if (policy.files.system == SystemFiles::kUsr) {
    if (!has_slash) {
      host = FindOnHost(argv0, caller_path);
      if (host) {
        if (auto real = ResolveShim(*host)) host = std::move(real);
      }
    } else if (!policy.files.mounts.empty() && !argv0.starts_with('/')) {
      // Relative to the guest's working directory, which a mount provides: nothing of the host is meant.
      const std::string workdir = policy.files.workdir.empty() ? "/workspace" : policy.files.workdir;
      if (!IsMounted(policy, workdir)) host = sys::Normalize(argv0, sys::CurrentDirectory());
    } else {
      host = sys::Normalize(argv0, sys::CurrentDirectory());
    }
  }
  if (host && !IsSystem(policy, *host) && !IsMounted(policy, *host) && sys::IsExecutable(*host)) {
    AddProgram(policy, command, *host);
    command.exec_paths = {*host};
    return command;
  }
  if (has_slash) {
    command.exec_paths = {argv0};
    return command;
  }
  for (const std::string& directory : SplitPath(command.path)) command.exec_paths.push_back(directory + "/" + argv0);
  return command;
}

}  // namespace belljar::plan
