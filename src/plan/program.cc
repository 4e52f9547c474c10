#include "plan/program.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/printable.h"
#include "plan/toolchain.h"
#include "sys/files.h"

namespace belljar::plan {
namespace {

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

bool IsName(const std::string& text) { return !text.empty() && text != "." && text != ".." && !text.contains('/'); }

// pyenv and its kin put shims on PATH that look up the real program by a slow script and the caller's own files. The
// real one is found here instead: by PYENV_VERSION, else by the global version file.
std::optional<std::string> ResolveShim(const std::string& path, const Caller& caller) {
  const std::string directory = Parent(path);
  if (!directory.ends_with("/shims")) return std::nullopt;
  const std::string root = Parent(directory);
  std::string version = caller.Variable("PYENV_VERSION").value_or("");
  if (version.empty()) version = sys::ReadSmallFile(root + "/version", 256).value_or("");
  version = version.substr(0, version.find_first_of(" \n:"));
  if (!IsName(version)) return std::nullopt;
  std::string real = root + "/versions/" + version + "/bin" + path.substr(directory.size());
  if (!sys::IsExecutable(real)) return std::nullopt;
  return real;
}

// rustup's proxies likewise: cargo and its kin are links to rustup, which runs the program of the default toolchain.
std::optional<std::string> ResolveRustup(const std::string& path, const Caller& caller) {
  const auto target = sys::ReadLink(path);
  if (!target || !sys::Normalize(*target, Parent(path)).ends_with("/rustup")) return std::nullopt;
  const std::string root = caller.Variable("RUSTUP_HOME").value_or(Parent(Parent(Parent(path))) + "/.rustup");
  std::string toolchain = caller.Variable("RUSTUP_TOOLCHAIN").value_or("");
  if (toolchain.empty()) {
    constexpr std::string_view kKey = "default_toolchain = \"";
    const std::string settings = sys::ReadSmallFile(root + "/settings.toml", 65536).value_or("");
    const std::size_t at = settings.find(kKey);
    if (at == std::string::npos) return std::nullopt;
    toolchain = settings.substr(at + kKey.size());
    toolchain.resize(std::min(toolchain.find('"'), toolchain.size()));
  }
  if (!IsName(toolchain)) return std::nullopt;
  std::string real = root + "/toolchains/" + toolchain + "/bin" + path.substr(Parent(path).size());
  if (!sys::IsExecutable(real)) return std::nullopt;
  return real;
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

// Collects what a program outside the system needs.
class Bringer {
 public:
  Bringer(const Policy& policy, const Caller& caller, Program& program)
      : policy_(policy), home_(caller.Variable("HOME").value_or("")), program_(program) {}

  void ForProgram(const std::string& named) {
    const auto toolchain = Trail(named);
    if (!toolchain) return;
    program_.path = toolchain->prefix + "/bin:" + program_.path;
    // SECURITY: the script may be written by a guest, so its first line counts only where it names its own toolchain,
    // as the console scripts of a virtual environment do: nothing is mounted because a script says so.
    const auto interpreter = Interpreter(named);
    if (!interpreter) return;
    const auto directory = sys::RealPath(Parent(*interpreter));
    if (directory && sys::IsWithin(*directory, toolchain->prefix)) (void)Trail(*interpreter);
  }

 private:
  // Brings what a name leads to, and returns the toolchain that the name itself is in.
  // SECURITY: each place on the way is judged by its real path, and none is brought because a link leads to it unless
  // it is a toolchain of the caller's or the system's. The links themselves are made again inside, where they lead to
  // nothing that was not granted.
  std::optional<Toolchain> Trail(const std::string& named) {
    const auto trail = sys::Follow(named);
    if (!trail) return std::nullopt;
    std::optional<Toolchain> first;
    Named by = Named::kByCaller;
    for (const sys::Link& link : trail->links) {
      if (auto found = FindToolchain(policy_, home_, link.at, by)) {
        Bring(found->prefix, fmt::format("{} of {}", found->kind, named));
        if (!first) first = std::move(*found);
      } else if (!IsThere(link.at)) {
        // A virtual environment that is not brought must not quietly become the system's Python.
        if (by == Named::kByCaller && !found.error().prefix.empty()) Refuse(named, link.at, found.error());
        if (!IsOnTheWayToAMount(link.at)) program_.links.push_back(link);
      }
      if (!IsAdministrators(link.at)) by = Named::kByLink;
    }
    auto found = FindToolchain(policy_, home_, trail->end, by);
    if (found) {
      Bring(found->prefix, fmt::format("{} of {}", found->kind, named));
      if (!first) first = std::move(*found);
    } else if (!IsThere(trail->end)) {
      if (by == Named::kByLink || !found.error().prefix.empty()) {
        Refuse(named, trail->end, found.error());
      } else {
        Bring(trail->end, "the program itself");
      }
    }
    return first;
  }

  void Refuse(const std::string& named, const std::string& place, const Withheld& withheld) {
    const std::string& grant = withheld.prefix.empty() ? place : withheld.prefix;
    program_.refusal = Error{
        .step = "run " + named,
        .message = place == named ? fmt::format("what it needs is not brought along: {}", withheld.why)
                                  : fmt::format("it leads to {}, which is not brought along: {}", place, withheld.why),
        .hint = fmt::format("grant it with --ro {} if the guest may read all of it", base::ShellWord(grant))};
  }

  // A link that no checkout and no guest can have made: one of the directory of all homes, or of the system.
  bool IsAdministrators(const std::string& link) const {
    const std::string parent = Parent(link);
    return parent.empty() || parent == "/home" || IsSystem(policy_, link);
  }

  bool IsThere(const std::string& path) const {
    return IsSystem(policy_, path) || IsMounted(policy_, path) ||
           std::ranges::any_of(program_.brought, [&](const Brought& have) { return sys::IsWithin(path, have.path); });
  }

  bool IsOnTheWayToAMount(const std::string& path) const {
    return std::ranges::any_of(policy_.files.mounts, [&](const Mount& m) { return sys::IsWithin(m.target, path); });
  }

  void Bring(const std::string& path, std::string why) {
    if (IsThere(path)) return;
    for (const char* kernel : {"/proc", "/sys", "/dev"}) {
      if (!sys::IsWithin(path, kernel)) continue;
      program_.refusal = Error{.step = "run a program of " + path,
                               .message = fmt::format("nothing of the host's {} can be brought along", kernel),
                               .hint = "copy it to another place"};
      return;
    }
    program_.brought.push_back({.path = path, .why = std::move(why)});
  }

  const Policy& policy_;
  const std::string home_;
  Program& program_;
};

}  // namespace

std::vector<std::string> LookInside(const std::string& argv0, std::string_view path) {
  if (argv0.find('/') != std::string::npos) return {argv0};
  std::vector<std::string> candidates = SplitPath(path);
  for (std::string& directory : candidates) directory += "/" + argv0;
  return candidates;
}

Program FindProgram(const Policy& policy, const std::string& argv0, const Caller& caller) {
  Program program{.exec_paths = {}, .brought = {}, .links = {}, .path = std::string(kSystemPath), .refusal = {}};
  const bool has_slash = argv0.find('/') != std::string::npos;
  std::optional<std::string> host;
  if (policy.files.system == SystemFiles::kUsr) {
    if (!has_slash) {
      host = FindOnHost(argv0, caller.Variable("PATH").value_or(""));
      if (host) {
        if (auto real = ResolveShim(*host, caller)) host = std::move(real);
        if (auto real = ResolveRustup(*host, caller)) host = std::move(real);
      }
    } else if (!policy.files.mounts.empty() && !argv0.starts_with('/')) {
      // Relative to the guest's working directory, which a mount provides: nothing of the host is meant.
      const std::string workdir = policy.files.workdir.empty() ? "/workspace" : policy.files.workdir;
      if (!IsMounted(policy, workdir)) host = sys::Normalize(argv0, caller.directory);
    } else {
      host = sys::Normalize(argv0, caller.directory);
    }
  }
  if (host && !IsSystem(policy, *host) && !IsMounted(policy, *host) && sys::IsExecutable(*host)) {
    Bringer(policy, caller, program).ForProgram(*host);
    program.exec_paths = {*host};
    return program;
  }
  // A directory of the system that the usual PATH does not hold, as /usr/local/go/bin.
  if (!has_slash && host && IsSystem(policy, *host)) {
    const std::vector<std::string> usual = SplitPath(kSystemPath);
    if (std::ranges::find(usual, Parent(*host)) == usual.end()) program.path += ":" + Parent(*host);
  }
  program.exec_paths = LookInside(argv0, program.path);
  return program;
}

}  // namespace belljar::plan
