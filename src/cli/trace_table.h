// cli/trace_table.h: what a traced run was refused or missed, for people.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <belljar/result.h>

namespace belljar::cli {

/// Empty when there is nothing to tell. At most `rows` lines, what shares a grant on one of them.
std::string TraceTable(const Result& result, std::size_t rows = 12);

}  // namespace belljar::cli
