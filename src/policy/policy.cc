#include <belljar/policy.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>

#include "policy/bind.h"
#include "policy/document.h"
#include "policy/key.h"
#include "policy/profile.h"

namespace belljar {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

Expected<std::string> ReadWhole(const std::string& path) {
  const auto fail = [&path](int code) {
    return std::unexpected(Error{path, "can't read the policy", "check the path and its permissions", code});
  };
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "re"));
  if (!file) return fail(errno);
  // One byte more than is allowed, so that the readers can tell "too large" from "just fits".
  std::string text(policy::kMaxDocumentBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) return fail(errno);
  return text;
}

void AddMount(Policy& policy, std::string source, std::string target, Access access) {
  if (target.empty()) target = source;
  policy.files.mounts.push_back({std::move(source), std::move(target), access});
}

}  // namespace

std::string_view Name(NetworkMode mode) {
  switch (mode) {
    case NetworkMode::kNone: return "none";
    case NetworkMode::kAllow: return "allow";
    case NetworkMode::kFull: return "full";
    case NetworkMode::kHost: return "host";
  }
  return "invalid";
}

std::string_view Name(Access access) { return access == Access::kReadOnly ? "ro" : "rw"; }

std::string_view Name(Background background) { return background == Background::kEnd ? "end" : "keep"; }
std::string_view Name(SystemFiles system) { return system == SystemFiles::kUsr ? "usr" : "none"; }

Policy Policy::Profile(std::string_view name) {
  Expected<Policy> profile = policy::LoadProfile(name);
  if (profile) return *std::move(profile);
  Policy broken;
  broken.Fail(std::move(profile.error()));
  return broken;
}

Expected<Policy> policy::ReadPolicyFile(const std::string& path, const std::optional<Policy>& base) {
  const Expected<std::string> text = ReadWhole(path);
  if (!text) return std::unexpected(text.error());
  const Expected<Node> document = path.ends_with(".json") ? ReadJson(*text, path) : ReadToml(*text, path);
  if (!document) return std::unexpected(document.error());
  return Bind(*document, path, base);
}

Expected<Policy> Policy::FromFile(const std::string& path) { return policy::ReadPolicyFile(path); }

Expected<Policy> Policy::FromToml(std::string_view text, std::string_view name) {
  const Expected<policy::Node> document = policy::ReadToml(text, name);
  if (!document) return std::unexpected(document.error());
  return policy::Bind(*document, name);
}

Expected<Policy> Policy::FromJson(std::string_view text, std::string_view name) {
  const Expected<policy::Node> document = policy::ReadJson(text, name);
  if (!document) return std::unexpected(document.error());
  return policy::Bind(*document, name);
}

Policy& Policy::Set(std::string_view key, std::string_view value) {
  const policy::Key* found = policy::FindKey(key);
  if (found == nullptr) {
    Fail(policy::UnknownKey(key, "policy"));
    return *this;
  }
  // The key "profile" replaces everything, yet neither an earlier error nor the host-network grant may get lost.
  const std::optional<Error> earlier = error_;
  const bool granted = host_network_granted_;
  if (Expected<void> done = policy::SetKey(*this, *found, value, found->name); !done) Fail(std::move(done.error()));
  if (earlier) error_ = earlier;
  host_network_granted_ = granted;
  return *this;
}

Policy& Policy::ReadOnly(std::string source, std::string target) {
  AddMount(*this, std::move(source), std::move(target), Access::kReadOnly);
  return *this;
}

Policy& Policy::ReadWrite(std::string source, std::string target) {
  AddMount(*this, std::move(source), std::move(target), Access::kReadWrite);
  return *this;
}

Policy& Policy::Hide(std::string target) {
  files.hide.push_back(std::move(target));
  return *this;
}

Policy& Policy::Env(std::string name, std::string value) {
  const auto same = std::ranges::find(environment.set, name, &std::pair<std::string, std::string>::first);
  if (same != environment.set.end()) {
    same->second = std::move(value);
  } else {
    environment.set.emplace_back(std::move(name), std::move(value));
  }
  return *this;
}

Policy& Policy::PassEnv(std::string name) {
  if (std::ranges::find(environment.pass, name) == environment.pass.end()) environment.pass.push_back(std::move(name));
  return *this;
}

Policy& Policy::DangerouslyShareHostNetwork() {
  network.mode = NetworkMode::kHost;
  host_network_granted_ = true;
  return *this;
}

void Policy::NoteOrigin(std::string_view key, std::string origin) {
  const policy::Key* known = policy::FindKey(key);
  if (known == nullptr) return;
  const auto same = std::ranges::find(origins_, known->name, &std::pair<std::string_view, std::string>::first);
  if (same != origins_.end()) {
    same->second = std::move(origin);
  } else {
    origins_.emplace_back(known->name, std::move(origin));
  }
}

void Policy::Fail(Error error) {
  if (!error_) error_ = std::move(error);
}

}  // namespace belljar
