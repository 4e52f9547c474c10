// seccomp/constants.h: the kernel constants that rules may name, with their values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace belljar::seccomp {

/// The value of e.g. "AF_UNIX" on the architecture that is being built for.
std::optional<std::uint64_t> FindConstant(std::string_view name);
std::optional<int> FindErrno(std::string_view name);

}  // namespace belljar::seccomp
