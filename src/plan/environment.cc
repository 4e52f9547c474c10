// The guest's environment: PATH, what the policy sets, what it passes by name. Nothing else of the caller's.
#include <algorithm>

#include "plan/sections.h"

namespace belljar::plan {

std::vector<std::string> BuildEnvironment(const Draft& draft) {
  std::vector<std::pair<std::string, std::string>> variables = {
      {"PATH", draft.program.path}, {"HOME", std::string(kHome)}, {"LANG", "C.UTF-8"}};
  const auto set = [&](const std::string& name, const std::string& value) {
    const auto found = std::ranges::find(variables, name, [](const auto& v) { return v.first; });
    if (found != variables.end()) {
      found->second = value;
    } else {
      variables.emplace_back(name, value);
    }
  };
  const auto pass = [&](const std::string& name) {
    if (const auto value = draft.request.caller.Variable(name)) set(name, *value);
  };
  if (draft.request.streams == Streams::kTerminal) pass("TERM");
  const Environment& environment = draft.request.policy.environment;
  for (const std::string& name : environment.pass) pass(name);
  for (const auto& [name, value] : environment.set) set(name, value);
  if (!draft.OwnRoot()) {
    // There is no private /tmp in these forms; the private directory stands for it.
    for (auto& [name, value] : variables) {
      if (name == "HOME" && value == kHome) value = draft.out.private_directory;
    }
    if (!draft.HasNamespaces()) set("TMPDIR", draft.out.private_directory);
  }
  std::vector<std::string> result;
  result.reserve(variables.size());
  for (const auto& [name, value] : variables) result.push_back(name + "=" + value);
  return result;
}

}  // namespace belljar::plan
