#include "policy/profile.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "policy/bind.h"
#include "policy/nearest.h"

namespace belljar::policy {

std::string_view NamedProfile::summary() const {
  std::string_view line = text.substr(0, text.find('\n'));
  while (line.starts_with('#') || line.starts_with(' ')) line.remove_prefix(1);
  return line;
}

const NamedProfile* FindProfile(std::string_view name) {
  for (const NamedProfile& profile : Profiles()) {
    if (profile.name == name) return &profile;
  }
  return nullptr;
}

Expected<Policy> LoadProfile(std::string_view name) {
  if (name == "default") return Policy();
  const NamedProfile* profile = FindProfile(name);
  if (profile == nullptr) {
    std::vector<std::string_view> names;
    for (const NamedProfile& known : Profiles()) names.push_back(known.name);
    const std::string_view nearest = Nearest(name, names);
    std::string hint = nearest.empty() ? fmt::format("there are {}", fmt::join(names, ", "))
                                       : fmt::format("did you mean {}?", Quoted(nearest));
    return std::unexpected(Error{"profile", fmt::format("there is no profile {}", Quoted(name)), std::move(hint)});
  }
  const Expected<Node> document = ReadToml(profile->text, fmt::format("profiles/{}.toml", name));
  if (!document) return std::unexpected(document.error());
  Expected<Policy> policy = Bind(*document, fmt::format("profiles/{}.toml", name), Policy());
  if (policy) policy->profile = name;
  return policy;
}

}  // namespace belljar::policy
