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

// rustup's proxies likewise: cargo and its kin are links to rustup, which runs the program of the default toolchain.
std::optional<std::string> ResolveRustup(const std::string& path) {
  const auto target = sys::ReadLink(path);
  if (!target || !sys::Normalize(*target, Parent(path)).ends_with("/rustup")) return std::nullopt;
  const char* home = std::getenv("RUSTUP_HOME");
  const std::string root = home != nullptr ? home : Parent(Parent(Parent(path))) + "/.rustup";
  std::string toolchain;
  if (const char* chosen = std::getenv("RUSTUP_TOOLCHAIN"); chosen != nullptr) toolchain = chosen;
  if (toolchain.empty()) {
    constexpr std::string_view kKey = "default_toolchain = \"";
    const std::string settings = sys::ReadSmallFile(root + "/settings.toml", 65536).value_or("");
    const std::size_t at = settings.find(kKey);
    if (at == std::string::npos) return std::nullopt;
    toolchain = settings.substr(at + kKey.size());
    toolchain.resize(std::min(toolchain.find('"'), toolchain.size()));
  }
  if (toolchain.empty() || toolchain.find('/') != std::string::npos) return std::nullopt;
  std::string real = root + "/toolchains/" + toolchain + "/bin" + path.substr(Parent(path).size());
  if (!sys::IsExecutable(real)) return std::nullopt;
  return real;
}

// The directory that a program's own files are under, when there is one that is plainly a program's: a home directory
// or /opt as a whole is not handed over for a file in its bin.
std::optional<std::string> Prefix(const std::string& program) {
  const std::string directory = Parent(program);
  if (!directory.ends_with("/bin")) return std::nullopt;
  std::string prefix = Parent(directory);
  // SECURITY: a home directory can hold any of these marks and is never handed over: the caller's, or one of /home.
  const char* home = std::getenv("HOME");
  if (home != nullptr && sys::IsWithin(sys::Normalize(home, "/"), prefix)) return std::nullopt;
  const auto depth = std::ranges::count(prefix, '/');
  if (depth < 2 || (depth == 2 && prefix.starts_with("/home/"))) return std::nullopt;
  for (const char* mark :
       {"/pyvenv.cfg", "/conda-meta", "/include/node", "/lib/rustlib", "/lib/jvm.cfg", "/lib/modules", "/pkg/tool"}) {
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

// The interpreter that a script names in its first line.
std::optional<std::string> Interpreter(const std::string& program) {
  const std::string head = sys::ReadHead(program, 256);
  std::string_view line(head);
  line = line.substr(0, line.find('\n'));
  if (!line.starts_with("#!")) return std::nullopt;
  line.remove_prefix(std::min(line.find('/'), line.size()));
  if (line.empty()) return std::nullopt;
  return std::string(line.substr(0, line.find_first_of(" \t\r")));
}

// A program outside the system: it, its prefix, and the same for all that it links to (a virtual environment's python).
void AddLinks(const Policy& policy, Command& command, const std::string& program) {
  std::string at = program;
  for (int hops = 0; hops < 8; ++hops) {
    if (const auto prefix = Prefix(at)) {
      AddReadOnly(policy, command, *prefix);
    } else {
      AddReadOnly(policy, command, at);
    }
    const auto target = sys::ReadLink(at);
    if (!target) return;
    at = sys::Normalize(*target, Parent(at));
  }
}

void AddProgram(const Policy& policy, Command& command, const std::string& program) {
  AddLinks(policy, command, program);
  const auto prefix = Prefix(program);
  if (!prefix) return;
  command.path = *prefix + "/bin:" + command.path;
  // SECURITY: the script may be written by a guest, so its first line counts only where it names its own prefix, as the
  // console scripts of a virtual environment do: nothing is mounted because a script says so.
  const auto interpreter = Interpreter(program);
  if (interpreter && sys::IsWithin(*interpreter, *prefix)) AddLinks(policy, command, *interpreter);
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
        if (auto real = ResolveRustup(*host)) host = std::move(real);
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
  // A directory of the system that the usual PATH does not hold, as /usr/local/go/bin.
  if (host && IsSystem(policy, *host)) {
    const std::vector<std::string> usual = SplitPath(kSystemPath);
    if (std::ranges::find(usual, Parent(*host)) == usual.end()) command.path += ":" + Parent(*host);
  }
  for (const std::string& directory : SplitPath(command.path)) command.exec_paths.push_back(directory + "/" + argv0);
  return command;
}

}  // namespace belljar::plan
