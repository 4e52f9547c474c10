// seccomp/rules.h: the syscall lists of profiles/*.seccomp as values. tools/seccomp/README.md describes the format.
//
// Values only: no numbers of this architecture and no BPF here, so that tests can judge a filter by the rules alone.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::seccomp {

enum class Verb { kAllow, kDeny, kKill };
enum class Notice { kReported, kQuiet };  ///< Quiet: the kernel answers, nobody is told.
enum class Width { k32, k64 };            ///< How much of the register the kernel itself looks at.
enum class Sense { kIn, kNotIn };

struct Action {
  Verb verb = Verb::kKill;
  int error = 0;  ///< For kDeny; 0: it is told that it was done.
  Notice notice = Notice::kReported;

  bool operator==(const Action&) const = default;
};

/// Both ends belong to it.
struct Range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  auto operator<=>(const Range&) const = default;
};

/// (argument & mask) is in, or is not in, `values`.
struct Condition {
  unsigned argument = 0;
  Width width = Width::k32;
  std::uint64_t mask = 0;
  Sense sense = Sense::kIn;
  std::vector<Range> values;  ///< Sorted, without overlap.
};

/// One line. Lines of one call are tried in order; the first whose conditions all hold decides.
struct Rule {
  std::string name;
  std::optional<int> number;  ///< From name@NUMBER: for calls newer than libseccomp.
  Action action;
  std::vector<Condition> conditions;
  std::string condition_text;  ///< As written, for the documentation.
  std::string reason;
  std::string group;    ///< The title of the [group] it stands in.
  std::string section;  ///< In a narrowing file: the flag before the colon of the group's title.
  int line = 0;
};

/// Kernel: the whole allow-list. Narrowing: sections that only take away.
enum class FileKind { kKernel, kNarrowing };

struct RuleFile {
  std::string path;
  FileKind kind = FileKind::kKernel;
  std::vector<Rule> rules;
};

/// Errors read "path:line: what is wrong".
template <typename T>
using Result = std::expected<T, std::string>;

Result<RuleFile> ParseRules(std::string_view text, const std::string& path, FileKind kind);

/// "EPERM" for 1; rules can only hold errnos that have a name here.
std::string_view ErrnoName(int error);

}  // namespace belljar::seccomp
