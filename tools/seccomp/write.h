// seccomp/write.h: the two outputs of the compiler, as text.
#pragma once

#include <string>

#include "seccomp/resolve.h"

namespace belljar::seccomp {

/// The source file that defines what src/plan/seccomp_tables.h declares.
Result<std::string> WriteTables(const RuleFile& kernel, const RuleFile& narrowing, Arch arch);

/// docs/syscalls.md. The same on every architecture.
std::string WriteMarkdown(const RuleFile& kernel, const RuleFile& narrowing);

}  // namespace belljar::seccomp
