#include "cli/policy_flags.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "policy/bind.h"
#include "policy/key.h"
#include "policy/profile.h"
#include "policy/protect.h"
#include "policy/units.h"

namespace belljar::cli {
namespace {

using policy::Key;
using policy::Kind;
using policy::Quoted;

bool IsRepeatable(const Key& key) { return key.kind == Kind::kTextList || key.kind == Kind::kTextMap; }

std::string GroupOf(const Key& key) {
  if (key.section().empty()) return "Policy";
  std::string group(key.section());
  group[0] = static_cast<char>(group[0] - 'a' + 'A');
  return group;
}

std::string HelpOf(const Key& key) {
  std::string help = fmt::format("{}, e.g. {}", key.doc, key.example);
  if (!key.initial.empty()) help += fmt::format(" (default: {})", key.initial);
  if (IsRepeatable(key)) help += "; may be repeated";
  return help;
}

CLI::Option* AddValues(CLI::App& app, std::string_view flag, std::vector<std::string>& to, std::string help) {
  // One value for each time the flag stands there: otherwise "--hide /a ls" would hide "ls".
  return app.add_option(std::string(flag), to, std::move(help))->allow_extra_args(false);
}

Expected<std::string> AbsoluteSource(std::string_view source, std::string_view flag) {
  namespace fs = std::filesystem;
  fs::path path(source);
  if (source == "~" || source.starts_with("~/")) {
    const char* home = std::getenv("HOME");
    if (home == nullptr || *home == '\0') {
      return std::unexpected(Error{std::string(flag), fmt::format("{} needs $HOME, which is not set", Quoted(source)),
                                   "write the path in full"});
    }
    path = fs::path(home) / source.substr(std::min<std::size_t>(2, source.size()));
  }
  std::error_code error;
  path = fs::absolute(path, error);
  if (error) return std::unexpected(Error{std::string(flag), "can't find the current directory", "", error.value()});
  // "link/.." is not what it looks like, so parents are resolved on the disk where that is possible.
  if (path.native().find("..") != std::string::npos) {
    const fs::path real = fs::canonical(path, error);
    if (!error) path = real;
  }
  std::string normal = path.lexically_normal().native();
  while (normal.size() > 1 && normal.ends_with('/')) normal.pop_back();
  return normal;
}

}  // namespace

Expected<Mount> ParseMount(std::string_view text, Access access, std::string_view flag) {
  const auto fail = [&](std::string hint) {
    return std::unexpected(Error{std::string(flag), fmt::format("{} is not SRC[:DST]", Quoted(text)), std::move(hint)});
  };
  std::string_view source = text;
  std::string target;
  // A target is absolute, so the last ":/" divides; colons elsewhere belong to file names.
  if (const std::size_t at = text.rfind(":/"); at != std::string_view::npos) {
    source = text.substr(0, at);
    target = text.substr(at + 1);
    while (target.size() > 1 && target.ends_with('/')) target.pop_back();
  } else if (text.find(':') != std::string_view::npos) {
    return fail("the target after the colon must start with /, such as data:/data");
  }
  if (source.empty()) return fail("name a file or directory of the host, such as ./data or ~/data:/data");
  Expected<std::string> absolute = AbsoluteSource(source, flag);
  if (!absolute) return std::unexpected(absolute.error());
  if (target.empty()) target = *absolute;
  return Mount{*std::move(absolute), std::move(target), access};
}

void PolicyFlags::AddTo(CLI::App& app) {
  const std::span<const Key> keys = policy::Keys();
  values_.resize(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Key& key = keys[i];
    const std::string group = GroupOf(key);
    if (key.kind == Kind::kMounts) {
      AddValues(
          app, "--ro", read_only_,
          "Let the command read a file or directory of the host, e.g. ~/data:/data; DST is SRC when left out; may "
          "be repeated")
          ->type_name(std::string(key.argument))
          ->group(group);
      AddValues(app, "--rw", read_write_,
                "Let the command change a file or directory of the host, e.g. --rw .; may be repeated")
          ->type_name(std::string(key.argument))
          ->group(group);
      continue;
    }
    if (key.flag.empty()) continue;  // No verb has a use for it.
    CLI::Option* option = AddValues(app, key.flag, values_[i], HelpOf(key));
    option->type_name(std::string(key.argument))->group(group);
    if (key.name == "files.protect") {
      AddValues(app, "--unprotect", unprotect_,
                "Take a name from those that stay read-only, e.g. .git/config, or all of them: all; may be repeated")
          ->type_name(std::string(key.argument))
          ->group(group);
    }
    if (!IsRepeatable(key)) option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    if (key.kind == Kind::kProfile) {
      app.add_option("--policy", policy_file_,
                     "Read the policy from a TOML or .json file, e.g. policy.toml; flags change it further")
          ->type_name("FILE")
          ->group(group);
    }
  }
  app.add_flag("--dangerously-share-host-network", share_host_network_,
               "Give the command the host's own network, local services included; this is --net host and its "
               "permission in one")
      ->group("Network");
}

const std::vector<std::string>& PolicyFlags::ValuesOf(std::string_view key) const {
  static const std::vector<std::string> kNone;
  const policy::Key* found = policy::FindKey(key);
  return found == nullptr || values_.empty() ? kNone : values_[static_cast<std::size_t>(found - policy::Keys().data())];
}

Expected<Policy> PolicyFlags::Build() const {
  Expected<Policy> policy = Start();
  if (!policy) return policy;
  for (const auto apply : {&PolicyFlags::ApplyKeys, &PolicyFlags::ApplyNetwork, &PolicyFlags::ApplyMounts}) {
    if (Expected<void> done = (this->*apply)(*policy); !done) return std::unexpected(done.error());
  }
  return policy;
}

Expected<Policy> PolicyFlags::Start() const {
  std::optional<Policy> base;
  if (const std::vector<std::string>& names = ValuesOf("profile"); !names.empty()) {
    Expected<Policy> profile = policy::LoadProfile(names.back());
    if (!profile) {
      profile.error().step = "--profile";
      return profile;
    }
    base = *std::move(profile);
  }
  if (!policy_file_.empty()) return policy::ReadPolicyFile(policy_file_, base);
  return base ? *std::move(base) : Policy();
}

Expected<void> PolicyFlags::ApplyKeys(Policy& policy) const {
  // A variable that the file sets and a flag passes on, or the other way round, is no contradiction: the flag wins.
  for (const std::string& assignment : ValuesOf("environment.set")) {
    std::erase(policy.environment.pass, assignment.substr(0, assignment.find('=')));
  }
  for (const std::string& name : ValuesOf("environment.pass")) {
    std::erase_if(policy.environment.set, [&](const auto& variable) { return variable.first == name; });
    std::erase(policy.environment.pass, name);
  }
  const std::span<const Key> keys = policy::Keys();
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (keys[i].kind == Kind::kProfile) continue;  // Start has followed it
    for (const std::string& value : values_[i]) {
      if (Expected<void> done = policy::SetKey(policy, keys[i], value, keys[i].flag); !done) return done;
    }
  }
  return {};
}

Expected<void> PolicyFlags::ApplyNetwork(Policy& policy) const {
  const bool mode_given = !ValuesOf("network.mode").empty();
  if (!mode_given && !ValuesOf("network.allow").empty()) {
    policy.network.mode = NetworkMode::kAllow;
    policy.NoteOrigin("network.mode", "--allow");
  }
  if (!share_host_network_) return {};
  if (mode_given && policy.network.mode != NetworkMode::kHost) {
    return std::unexpected(Error{"--dangerously-share-host-network",
                                 fmt::format("contradicts --net {}", Name(policy.network.mode)),
                                 "remove one of the two"});
  }
  policy.DangerouslyShareHostNetwork();
  return {};
}

Expected<void> PolicyFlags::ApplyMounts(Policy& policy) const {
  const auto add = [&](const std::vector<std::string>& texts, Access access, std::string_view flag) -> Expected<void> {
    for (const std::string& text : texts) {
      Expected<Mount> mount = ParseMount(text, access, flag);
      if (!mount) return std::unexpected(mount.error());
      policy.files.mounts.push_back(*std::move(mount));
    }
    return {};
  };
  if (Expected<void> done = add(read_only_, Access::kReadOnly, "--ro"); !done) return done;
  if (Expected<void> done = add(read_write_, Access::kReadWrite, "--rw"); !done) return done;
  for (const std::string& name : unprotect_) {
    if (policy::Unprotect(policy, name)) continue;
    return std::unexpected(Error{"--unprotect", fmt::format("{} is not protected", Quoted(name)),
                                 "belljar policy show lists files.protect; docs/policy.md what default stands for"});
  }
  return {};
}

}  // namespace belljar::cli
