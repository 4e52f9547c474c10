// seccomp/resolve.h: rule files + an architecture → what every system call number means.
//
// This is where forgetting is made impossible: each call that libseccomp knows must be in the kernel list, by name.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "seccomp/rules.h"

namespace belljar::seccomp {

enum class Arch { kX86_64, kAarch64 };

Arch NativeArch();
std::uint32_t AuditArch(Arch arch);

/// A range of numbers that belongs to another calling convention of the same AUDIT_ARCH: x32 on x86_64.
struct ForeignNumbers {
  bool present = false;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};
ForeignNumbers ForeignNumbersOf(Arch arch);

struct Call {
  std::string name;
  std::vector<Rule> rules;  ///< In the order in which they are tried; the last has no condition.
};

/// Number → call. Numbers that are absent are known to nobody: ENOSYS, quiet.
using CallTable = std::map<std::uint32_t, Call>;

/// The kernel list for one architecture, checked for completeness.
Result<CallTable> ResolveKernel(const RuleFile& kernel, Arch arch);

/// `base` with the rules of the chosen sections tried first.
Result<CallTable> ApplyNarrowing(CallTable base, const RuleFile& narrowing, const std::set<std::string>& sections,
                                 Arch arch);

/// Only the rules of the chosen sections; whatever they leave open is allowed.
Result<CallTable> ResolveNarrowingAlone(const RuleFile& narrowing, const std::set<std::string>& sections, Arch arch);

/// The one errno with which reported denials of this call are answered, 0 if none is reported. A listener knows only
/// the number of a call, so two different ones are an error.
Result<int> ReportedErrno(const Call& call, const std::string& path);

/// The flags of a narrowing file, in order of appearance.
std::vector<std::string> SectionsOf(const RuleFile& narrowing);

}  // namespace belljar::seccomp
