#include <cctype>
#include <vector>

#include <fmt/format.h>

#include "doctor/probe_tools.h"

namespace belljar::doctor {
namespace {

struct Flaw {
  const char* tool;
  const char* from;   // first bad version
  const char* fixed;  // first good one
  const char* what;
};

constexpr Flaw kFlaws[] = {
    {"runc", "0", "1.1.12", "CVE-2024-21626: a leaked file descriptor leads out of the container"},
    {"runc", "1.1.12", "1.2.8", "CVE-2025-31133, -52565, -52881: masked paths can be redirected during start"},
    {"runc", "1.3.0", "1.3.3", "CVE-2025-31133, -52565, -52881: masked paths can be redirected during start"},
    {"crun", "0", "1.4.4", "CVE-2022-27650: containers start with inheritable capabilities"},
    {"bwrap", "0", "0.3.3", "CVE-2019-12439: works in a predictable directory under /tmp"},
    {"bwrap", "0.4.0", "0.4.1", "CVE-2020-5291: a setuid bwrap gives root where user namespaces are allowed"},
    {"firejail", "0", "0.9.70", "CVE-2022-31214: --join gives root to local users"},
};

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

std::vector<int> Numbers(std::string_view version) {
  std::vector<int> numbers;
  for (std::size_t i = 0; i < version.size() && IsDigit(version[i]); ++i) {
    int number = 0;
    for (; i < version.size() && IsDigit(version[i]) && number < 100'000'000; ++i)
      number = number * 10 + version[i] - '0';
    numbers.push_back(number);
    if (i >= version.size() || version[i] != '.') break;
  }
  return numbers;
}

// Distributions repair old versions without changing the number; their own suffix is all that shows.
bool IsDistributionBuild(std::string_view version) {
  for (const std::string_view mark : {"deb", "ubuntu", ".el", ".fc", "+ds", "+dfsg"}) {
    if (version.find(mark) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

std::string FindVersion(std::string_view output) {
  for (std::size_t i = 0; i < output.size(); ++i) {
    if (!IsDigit(output[i])) continue;
    std::size_t end = i;
    bool dotted = false;
    while (end < output.size() && (std::isalnum(static_cast<unsigned char>(output[end])) != 0 ||
                                   std::string_view(".+~-:").find(output[end]) != std::string_view::npos)) {
      dotted |= output[end] == '.' && end + 1 < output.size() && IsDigit(output[end + 1]);
      ++end;
    }
    if (dotted) return std::string(output.substr(i, end - i));
    i = end;
  }
  return {};
}

int CompareVersions(std::string_view left, std::string_view right) {
  std::vector<int> a = Numbers(left);
  std::vector<int> b = Numbers(right);
  a.resize(4);
  b.resize(4);
  return a < b ? -1 : a > b ? 1 : 0;
}

std::string KnownProblem(std::string_view tool, std::string_view version, std::string_view cgroup_kind) {
  if (version.empty()) return {};
  for (const Flaw& flaw : kFlaws) {
    if (tool != flaw.tool || CompareVersions(version, flaw.from) < 0 || CompareVersions(version, flaw.fixed) >= 0)
      continue;
    const char* unsure = IsDistributionBuild(version) ? " (unless the distribution patched this build)" : "";
    return fmt::format("{}{}; upgrade to {} or newer", flaw.what, unsure, flaw.fixed);
  }
  if (tool == "crun" && cgroup_kind == "hybrid" && CompareVersions(version, "1.8.1") == 0) {
    return "crun 1.8.1 refuses hybrid cgroups, as this host has; use runc, or boot with "
           "systemd.unified_cgroup_hierarchy=1";
  }
  return {};
}

}  // namespace belljar::doctor
