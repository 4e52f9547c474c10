// plan/traced_calls.h: the system calls that a traced run reports, and where in their arguments paths and addresses
// are.
//
// Constant data. The filter only asks for a stop (SECCOMP_RET_TRACE), which every refusal of the allow-list outranks:
// what is refused without tracing is refused with it. Without a tracer a stop is answered by ENOSYS.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace belljar::plan {

/// What a call wants of the path or address it names.
enum class Use : std::uint8_t {
  kLook,     ///< Attributes, links, directories to be in: reading without the contents.
  kRead,     ///< Contents.
  kExecute,  ///< exec
  kWrite,    ///< Contents or attributes of what is there.
  kCreate,   ///< A new name; its directory has to be writable.
  kRemove,   ///< The end of a name; the same.
  kConnect,  ///< An address to talk to.
  kBind,     ///< An address of its own.
};

/// Where one path is among the arguments; -1: nowhere.
struct PathArgument {
  std::int8_t directory = -1;  ///< A descriptor that relative paths start at; -1: the working directory.
  std::int8_t path = -1;
};

struct TracedCall {
  int number = -1;
  std::string_view operation;  ///< In a user's words, "open", "stat" …
  Use use = Use::kLook;
  PathArgument first;
  PathArgument second;           ///< rename and link name two.
  std::int8_t flags = -1;        ///< open: its flags decide the use. Elsewhere AT_* flags.
  std::int8_t address = -1;      ///< A socket address …
  std::int8_t length = -1;       ///< … and its length.
  std::int8_t message = -1;      ///< A msghdr whose name is the address.
  std::int8_t flags_struct = 0;  ///< 1: `flags` points to them (openat2).
};

std::span<const TracedCall> TracedCalls();
/// Null when it is none of them.
const TracedCall* FindTraced(int number);

/// Stops at each of them. Lives as long as the program.
std::span<const sock_filter> TraceFilter();

/// For calls whose flags decide: what open(2) with these flags wants.
Use UseOfOpen(std::uint64_t flags);

}  // namespace belljar::plan
