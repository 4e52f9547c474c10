#include "plan/pattern.h"

#include <fnmatch.h>

#include <algorithm>

namespace belljar::plan {

bool IsPattern(std::string_view part) { return part.find_first_of("*?") != std::string_view::npos; }

bool Matches(std::string_view pattern, const std::string& name) {
  std::string plain;
  for (const char c : pattern) {
    if (c == '[' || c == '\\') plain += '\\';
    plain += c;
  }
  return ::fnmatch(plain.c_str(), name.c_str(), 0) == 0;
}

std::vector<std::string_view> Parts(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(part.size() + 1, path.size()));
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

}  // namespace belljar::plan
