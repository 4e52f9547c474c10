#include "policy/protect.h"

#include <algorithm>
#include <string_view>

namespace belljar::policy {

extern const std::string_view kProtectList;  // profiles/protect.list, embedded

namespace {

std::vector<std::string> DefaultNames() {
  std::vector<std::string> names;
  std::string_view rest = kProtectList;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    line = line.substr(0, line.find('#'));
    line = line.substr(0, line.find_last_not_of(' ') + 1);
    if (!line.empty()) names.emplace_back(line);
  }
  return names;
}

}  // namespace

std::vector<std::string> ProtectedNames(const Policy& policy) {
  std::vector<std::string> names;
  for (const std::string& name : policy.files.protect) {
    if (name == kProtectDefault) {
      std::ranges::move(DefaultNames(), std::back_inserter(names));
    } else {
      names.push_back(name);
    }
  }
  return names;
}

bool Unprotect(Policy& policy, std::string_view name) {
  if (name == "all") {
    policy.files.protect.clear();
    return true;
  }
  std::vector<std::string> names = ProtectedNames(policy);
  if (std::erase(names, name) == 0) return false;
  policy.files.protect = std::move(names);
  return true;
}

}  // namespace belljar::policy
