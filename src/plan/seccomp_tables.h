// plan/seccomp_tables.h: the shape of the source file that tools/seccomp generates. Only seccomp_filter.cc reads it.
#pragma once

#include <linux/filter.h>

#include <span>
#include <string_view>

namespace belljar::plan::seccomp_tables {

/// The bits that index the filter tables; the generator numbers the sections of profiles/narrowing.seccomp so.
inline constexpr unsigned kNoUncounted = 1;
inline constexpr unsigned kNoOthers = 2;
inline constexpr unsigned kNoHostReach = 4;
inline constexpr unsigned kNarrowings = 8;

struct Call {
  int number;
  int answer_errno;  ///< 0: never reported to a listener.
  std::string_view name;
  std::string_view reason;                ///< Why the kernel list reports it; empty when it doesn't.
  std::string_view narrowing_reasons[3];  ///< Why a narrowing reports it, in the order of the bits.
};

extern const std::span<const sock_filter> kKernelNotify[kNarrowings];
extern const std::span<const sock_filter> kKernelErrno[kNarrowings];
extern const std::span<const sock_filter> kNarrowing[kNarrowings];
extern const std::span<const Call> kCalls;  ///< Sorted by number.

}  // namespace belljar::plan::seccomp_tables
