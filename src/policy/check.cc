// Policy::Check: contradictions between values that are each right by themselves, and what this version can't do.
// The fields of a Policy are public, so bounds that the readers have already seen are looked at again.
#include <algorithm>
#include <set>
#include <string>

#include <fmt/format.h>

#include <belljar/policy.h>
#include "policy/key.h"

namespace belljar {
namespace {

using policy::Quoted;

std::unexpected<Error> Wrong(std::string key, std::string message, std::string hint) {
  return std::unexpected(Error{std::move(key), std::move(message), std::move(hint)});
}

// Absolute, no empty, "." or ".." part, no slash at the end. Anything else has two spellings, and two spellings of one
// path are how a rule is walked around.
bool IsNormal(std::string_view path) {
  if (!path.starts_with('/') || path.find('\0') != std::string_view::npos) return false;
  if (path == "/") return true;
  for (std::size_t begin = 1; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

bool IsAtOrBeneath(std::string_view path, std::string_view root) {
  return path.starts_with(root) && (path.size() == root.size() || root == "/" || path[root.size()] == '/');
}

Expected<void> CheckRanges(const Policy& policy) {
  for (const policy::Key& key : policy::Keys()) {
    if (key.kind != policy::Kind::kNumber) continue;
    const std::optional<std::uint64_t> value = key.get(policy);
    if (!value || *value == kUnlimited || (*value >= key.min && *value <= key.max)) continue;
    return Wrong(std::string(key.name), fmt::format("{} is out of range", policy::FormatNumber(key.unit, *value)),
                 fmt::format("it must be between {} and {}, or \"unlimited\"", policy::FormatNumber(key.unit, key.min),
                             policy::FormatNumber(key.unit, key.max)));
  }
  return {};
}

Expected<void> CheckLevels(const Policy& policy) {
  for (const auto& [key, level] : {std::pair("level", policy.level), std::pair("min_level", policy.MinLevel())}) {
    if (level == Level::kNone) {
      return Wrong(key, "none is for trusted in-process tools, and a command always gets a process of its own",
                   "use process for the weakest wall that a command can have");
    }
    if (level == Level::kContainer) {
      return Wrong(key, "level container is not in this version", "use kernel, the strongest level there is now");
    }
  }
  if (policy.MinLevel() > policy.level) {
    return Wrong("min_level", fmt::format("{} is above level {}", Name(policy.MinLevel()), Name(policy.level)),
                 "raise level, or lower or remove min_level");
  }
  return {};
}

Expected<void> CheckMount(const Mount& mount, std::set<std::string_view>& targets) {
  static constexpr auto kKey = "files.mounts";
  if (!mount.source.starts_with('/') || mount.source.find('\0') != std::string::npos) {
    return Wrong(kKey, fmt::format("the source {} is not an absolute path", Quoted(mount.source)),
                 "write it from / on; the flags --ro and --rw also take relative paths and ~");
  }
  if (!IsNormal(mount.target)) {
    return Wrong(kKey, fmt::format("the target {} is not a plain absolute path", Quoted(mount.target)),
                 "write it from / on, without \"..\", \".\", doubled slashes or a slash at the end");
  }
  if (mount.target == "/") {
    return Wrong(kKey, "the target \"/\" would replace the whole sandbox",
                 "mount beneath it; for a root of your own use files.system = \"none\"");
  }
  for (const std::string_view own : {"/proc", "/dev"}) {
    if (!IsAtOrBeneath(mount.target, own)) continue;
    return Wrong(kKey, fmt::format("the target {} is in {}, which the sandbox makes itself", Quoted(mount.target), own),
                 "choose another target");
  }
  if (!targets.insert(mount.target).second) {
    return Wrong(kKey, fmt::format("two mounts have the target {}", Quoted(mount.target)), "remove one of them");
  }
  return {};
}

Expected<void> CheckFiles(const Policy& policy) {
  std::set<std::string_view> targets;
  for (const Mount& mount : policy.files.mounts) {
    if (Expected<void> done = CheckMount(mount, targets); !done) return done;
  }
  const std::string_view workdir = policy.files.workdir.empty() ? "/workspace" : std::string_view(policy.files.workdir);
  if (!IsNormal(workdir)) {
    return Wrong("files.workdir", fmt::format("{} is not a plain absolute path", Quoted(workdir)),
                 "write it from / on, without \"..\", \".\", doubled slashes or a slash at the end");
  }
  for (const std::string& hidden : policy.files.hide) {
    if (!IsNormal(hidden) || hidden == "/") {
      return Wrong("files.hide", fmt::format("{} is not a plain absolute path beneath /", Quoted(hidden)),
                   "write the path as the guest sees it, from / on, without \"..\" or \".\"");
    }
    if (targets.contains(hidden)) {
      return Wrong("files.hide", fmt::format("{} is mounted and hidden at once", Quoted(hidden)),
                   "remove the mount or the hiding");
    }
    if (IsAtOrBeneath(workdir, hidden)) {
      return Wrong("files.hide", fmt::format("{} would hide the workdir {}", Quoted(hidden), Quoted(workdir)),
                   "choose another workdir or hide less");
    }
  }
  for (const std::string& name : policy.files.protect) {
    if (name.starts_with('/') || !IsNormal("/" + name) || name.empty()) {
      return Wrong("files.protect", fmt::format("{} is not a plain relative path", Quoted(name)),
                   "write it as seen from the mount, such as .git/hooks, without \"..\" or \".\"");
    }
  }
  return {};
}

Expected<void> CheckNetwork(const Policy& policy) {
  const NetworkMode mode = policy.network.mode;
  if (mode == NetworkMode::kAllow || mode == NetworkMode::kFull) {
    return Wrong("network.mode",
                 fmt::format("mode {} needs the egress broker, which this version doesn't have yet", Name(mode)),
                 "use --net none, or --net host with --dangerously-share-host-network");
  }
  if (!policy.network.allow.empty()) {
    return Wrong("network.allow", fmt::format("an allow list means nothing with mode {}", Name(mode)),
                 "remove the list, or set network.mode to \"allow\"");
  }
  if (mode == NetworkMode::kHost && !policy.host_network_granted()) {
    return Wrong("network.mode", "mode host gives the command the host's network, which a policy alone can't grant",
                 "add --dangerously-share-host-network if you mean it");
  }
  return {};
}

Expected<void> CheckName(std::string_view key, std::string_view name) {
  if (!name.empty() && name.find('=') == std::string_view::npos && name.find('\0') == std::string_view::npos) return {};
  return Wrong(std::string(key), fmt::format("{} is not the name of an environment variable", Quoted(name)),
               "a name is not empty and has neither \"=\" nor NUL in it");
}

Expected<void> CheckEnvironment(const Policy& policy) {
  std::set<std::string_view> names;
  for (const auto& [name, value] : policy.environment.set) {
    if (Expected<void> done = CheckName("environment.set", name); !done) return done;
    if (value.find('\0') != std::string::npos) {
      return Wrong("environment.set", fmt::format("the value of {} has a NUL character in it", Quoted(name)),
                   "remove it; no program could see what follows it");
    }
    if (!names.insert(name).second) {
      return Wrong("environment.set", fmt::format("{} is set twice", Quoted(name)), "remove one of the two");
    }
  }
  for (const std::string& name : policy.environment.pass) {
    if (Expected<void> done = CheckName("environment.pass", name); !done) return done;
    if (names.contains(name)) {
      return Wrong("environment.pass", fmt::format("{} is both set and passed on", Quoted(name)),
                   "decide for one: environment.set or environment.pass");
    }
  }
  return {};
}

}  // namespace

Expected<void> Policy::Check() const {
  if (error_) return std::unexpected(*error_);
  for (const auto check : {CheckRanges, CheckLevels, CheckFiles, CheckNetwork, CheckEnvironment}) {
    Expected<void> done = check(*this);
    if (done) continue;
    const auto origin =
        std::ranges::find(origins_, done.error().step, &std::pair<std::string_view, std::string>::first);
    if (origin != origins_.end()) done.error().step = origin->second;
    return done;
  }
  return {};
}

}  // namespace belljar
