#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "seccomp/compile.h"
#include "seccomp/write.h"

namespace belljar::seccomp {
namespace {

/// In the order of the bits in seccomp_tables.h.
const std::vector<std::string> kSections = {"no_uncounted", "no_others", "no_host_reach"};
const unsigned kNarrowings = 1U << kSections.size();

std::set<std::string> SectionsIn(unsigned bits) {
  std::set<std::string> chosen;
  for (std::size_t i = 0; i < kSections.size(); ++i) {
    if ((bits >> i & 1U) != 0) chosen.insert(kSections[i]);
  }
  return chosen;
}

void WriteFilter(std::string& out, const std::string& name, const std::vector<sock_filter>& filter) {
  fmt::format_to(std::back_inserter(out), "// {} instructions\nconstexpr sock_filter {}[] = {{\n", filter.size(), name);
  for (const sock_filter& op : filter) {
    fmt::format_to(std::back_inserter(out), "    {{{:#04x}, {}, {}, {:#x}}},\n", op.code, op.jt, op.jf, op.k);
  }
  out += "};\n";
}

void WriteIndex(std::string& out, const std::string& name, const std::string& prefix, unsigned first) {
  fmt::format_to(std::back_inserter(out), "constinit const std::span<const sock_filter> {}[kNarrowings] = {{\n", name);
  for (unsigned bits = 0; bits < kNarrowings; ++bits) {
    out += bits < first ? std::string("    {},\n") : fmt::format("    {}{},\n", prefix, bits);
  }
  out += "};\n";
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

bool Reported(const Rule& rule) { return rule.action.verb == Verb::kDeny && rule.action.notice == Notice::kReported; }

/// Why calls are refused: by the line for everything else if that refuses, otherwise by the first line that does.
std::string ReasonOf(const std::vector<Rule>& rules) {
  if (!rules.empty() && Reported(rules.back())) return rules.back().reason;
  const auto first = std::ranges::find_if(rules, Reported);
  return first != rules.end() ? first->reason : std::string();
}

Result<std::string> WriteCalls(const CallTable& base, const CallTable& narrowest, const RuleFile& narrowing) {
  std::string out = "constexpr Call kCallList[] = {\n";
  for (const auto& [number, call] : base) {
    Result<int> error = ReportedErrno(call, narrowing.path);
    if (error && *error == 0) error = ReportedErrno(narrowest.at(number), narrowing.path);
    if (!error) return std::unexpected(error.error());
    std::vector<std::string> reasons;
    for (const std::string& section : kSections) {
      std::vector<Rule> rules;
      std::ranges::copy_if(narrowing.rules, std::back_inserter(rules),
                           [&](const Rule& rule) { return rule.name == call.name && rule.section == section; });
      reasons.push_back(Quoted(ReasonOf(rules)));
    }
    fmt::format_to(std::back_inserter(out), "    {{{}, {}, {}, {}, {{{}}}}},\n", number, *error, Quoted(call.name),
                   Quoted(ReasonOf(call.rules)), fmt::join(reasons, ", "));
  }
  return out + "};\n";
}

}  // namespace

Result<std::string> WriteTables(const RuleFile& kernel, const RuleFile& narrowing, Arch arch) {
  if (SectionsOf(narrowing) != kSections) {
    return std::unexpected(
        fmt::format("{}: the sections must be {}, as in seccomp_tables.h", narrowing.path, fmt::join(kSections, ", ")));
  }
  const Result<CallTable> base = ResolveKernel(kernel, arch);
  if (!base) return std::unexpected(base.error());
  std::string out =
      "// Generated from profiles/*.seccomp by tools/seccomp. Do not edit.\n"
      "#include \"plan/seccomp_tables.h\"\n\nnamespace belljar::plan::seccomp_tables {\nnamespace {\n\n";
  for (unsigned bits = 0; bits < kNarrowings; ++bits) {
    const Result<CallTable> merged = ApplyNarrowing(*base, narrowing, SectionsIn(bits), arch);
    if (!merged) return std::unexpected(merged.error());
    WriteFilter(out, fmt::format("kNotify{}", bits), CompileFilter(*merged, arch, Answer::kNotify, Others::kRefuse));
    WriteFilter(out, fmt::format("kErrno{}", bits), CompileFilter(*merged, arch, Answer::kErrno, Others::kRefuse));
    const Result<CallTable> alone = ResolveNarrowingAlone(narrowing, SectionsIn(bits), arch);
    if (!alone) return std::unexpected(alone.error());
    if (bits != 0) {
      WriteFilter(out, fmt::format("kStacked{}", bits), CompileFilter(*alone, arch, Answer::kErrno, Others::kPass));
    }
    if (bits + 1 == kNarrowings) {
      const Result<std::string> calls = WriteCalls(*base, *merged, narrowing);
      if (!calls) return calls;
      out += *calls;
    }
  }
  out += "\n}  // namespace\n\n";
  WriteIndex(out, "kKernelNotify", "kNotify", 0);
  WriteIndex(out, "kKernelErrno", "kErrno", 0);
  WriteIndex(out, "kNarrowing", "kStacked", 1);
  out += "constinit const std::span<const Call> kCalls = kCallList;\n\n}  // namespace belljar::plan::seccomp_tables\n";
  return out;
}

}  // namespace belljar::seccomp
