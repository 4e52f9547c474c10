#include "seccomp/resolve.h"

#include <linux/audit.h>
#include <seccomp.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>

namespace belljar::seccomp {
namespace {

// Above every number that exists; libseccomp has no way to ask how many it knows.
constexpr int kLastNumber = 2047;

std::uint32_t ScmpArch(Arch arch) { return arch == Arch::kX86_64 ? SCMP_ARCH_X86_64 : SCMP_ARCH_AARCH64; }

std::string Fail(const RuleFile& file, const Rule& rule, std::string_view why) {
  return fmt::format("{}:{}: {}: {}", file.path, rule.line, rule.name, why);
}

/// nullopt: a call of other architectures only, e.g. open on aarch64.
Result<std::optional<std::uint32_t>> NumberOf(const RuleFile& file, const Rule& rule, Arch arch) {
  const int known = seccomp_syscall_resolve_name_arch(ScmpArch(arch), rule.name.c_str());
  if (rule.number) {
    if (known >= 0 && known != *rule.number) {
      return std::unexpected(Fail(file, rule, fmt::format("its number is {}, not {}", known, *rule.number)));
    }
    return static_cast<std::uint32_t>(*rule.number);
  }
  if (known == __NR_SCMP_ERROR) {
    return std::unexpected(Fail(file, rule, "libseccomp knows no such call; check the name, or write name@NUMBER"));
  }
  if (known < 0) return std::nullopt;
  return static_cast<std::uint32_t>(known);
}

bool Unconditional(const Rule& rule) { return rule.conditions.empty(); }

std::expected<void, std::string> Append(const RuleFile& file, const Rule& rule, std::uint32_t number,
                                        CallTable& table) {
  Call& call = table[number];
  if (!call.rules.empty() && call.name != rule.name) {
    return std::unexpected(Fail(file, rule, fmt::format("has the same number as {}", call.name)));
  }
  if (!call.rules.empty() && Unconditional(call.rules.back())) {
    // Two narrowings may take the same call away; within one, and in the kernel list, it is a mistake.
    if (call.rules.back().section != rule.section) return {};
    return std::unexpected(
        Fail(file, rule, fmt::format("line {} already decides every such call", call.rules.back().line)));
  }
  call.name = rule.name;
  call.rules.push_back(rule);
  return {};
}

Result<CallTable> Collect(const RuleFile& file, const std::set<std::string>& sections, Arch arch) {
  CallTable table;
  for (const Rule& rule : file.rules) {
    if (file.kind == FileKind::kNarrowing && !sections.contains(rule.section)) continue;
    const auto number = NumberOf(file, rule, arch);
    if (!number) return std::unexpected(number.error());
    const std::optional<std::uint32_t>& here = *number;
    if (!here.has_value()) continue;
    if (const auto added = Append(file, rule, here.value(), table); !added) return std::unexpected(added.error());
  }
  return table;
}

}  // namespace

Arch NativeArch() {
#if defined(__x86_64__)
  return Arch::kX86_64;
#elif defined(__aarch64__)
  return Arch::kAarch64;
#else
#error "Belljar has syscall lists for x86_64 and aarch64 only"
#endif
}

std::uint32_t AuditArch(Arch arch) { return arch == Arch::kX86_64 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64; }

// x32 calls come with AUDIT_ARCH_X86_64 and bit 30 set; negative numbers are nobody's and stay ENOSYS.
ForeignNumbers ForeignNumbersOf(Arch arch) {
  return arch == Arch::kX86_64 ? ForeignNumbers{true, 0x40000000U, 0x7fffffffU} : ForeignNumbers{};
}

Result<CallTable> ResolveKernel(const RuleFile& kernel, Arch arch) {
  Result<CallTable> table = Collect(kernel, {}, arch);
  if (!table) return table;
  for (const auto& [number, call] : *table) {
    if (!Unconditional(call.rules.back())) {
      return std::unexpected(Fail(kernel, call.rules.back(), "say in a last line without 'if' what happens otherwise"));
    }
    if (const auto error = ReportedErrno(call, kernel.path); !error) return std::unexpected(error.error());
  }
  std::string missing;
  for (int number = 0; number <= kLastNumber; ++number) {
    const std::unique_ptr<char, decltype(&std::free)> name(seccomp_syscall_resolve_num_arch(ScmpArch(arch), number),
                                                           &std::free);
    if (name && !table->contains(static_cast<std::uint32_t>(number))) missing += fmt::format(" {}", name.get());
  }
  if (!missing.empty()) {
    return std::unexpected(fmt::format("{}: neither allowed nor denied:{}; give each a line", kernel.path, missing));
  }
  return table;
}

Result<CallTable> ApplyNarrowing(CallTable base, const RuleFile& narrowing, const std::set<std::string>& sections,
                                 Arch arch) {
  Result<CallTable> extra = Collect(narrowing, sections, arch);
  if (!extra) return extra;
  for (auto& [number, call] : *extra) {
    const auto found = base.find(number);
    if (found == base.end()) return std::unexpected(Fail(narrowing, call.rules.front(), "is not in the kernel list"));
    std::vector<Rule> rules = call.rules;
    if (!Unconditional(rules.back())) rules.insert(rules.end(), found->second.rules.begin(), found->second.rules.end());
    found->second.rules = std::move(rules);
    if (const auto error = ReportedErrno(found->second, narrowing.path); !error) return std::unexpected(error.error());
  }
  return base;
}

Result<CallTable> ResolveNarrowingAlone(const RuleFile& narrowing, const std::set<std::string>& sections, Arch arch) {
  Result<CallTable> table = Collect(narrowing, sections, arch);
  if (!table) return table;
  for (auto& [number, call] : *table) {
    if (Unconditional(call.rules.back())) continue;
    Rule otherwise = call.rules.back();
    otherwise.conditions.clear();
    otherwise.action = Action{Verb::kAllow, 0, Notice::kQuiet};
    call.rules.push_back(otherwise);
  }
  return table;
}

Result<int> ReportedErrno(const Call& call, const std::string& path) {
  int error = 0;
  for (const Rule& rule : call.rules) {
    if (rule.action.verb != Verb::kDeny || rule.action.notice == Notice::kQuiet) continue;
    if (error != 0 && error != rule.action.error) {
      return std::unexpected(fmt::format("{}:{}: {}: reported with {} here but with {} elsewhere; use one or 'quiet'",
                                         path, rule.line, call.name, ErrnoName(rule.action.error), ErrnoName(error)));
    }
    error = rule.action.error;
  }
  return error;
}

std::vector<std::string> SectionsOf(const RuleFile& narrowing) {
  std::vector<std::string> sections;
  for (const Rule& rule : narrowing.rules) {
    if (std::ranges::find(sections, rule.section) == sections.end()) sections.push_back(rule.section);
  }
  return sections;
}

}  // namespace belljar::seccomp
