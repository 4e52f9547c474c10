// plan/seccomp_filter.h: the system call filters of level kernel, ready to be loaded.
//
//   std::span<const sock_filter> filter = KernelFilter(FilterVariant::kNotify, {.no_others = true});
//   sock_fprog program{static_cast<unsigned short>(filter.size()), const_cast<sock_filter*>(filter.data())};
//
// The filters are compiled while Belljar is being built, from profiles/kernel.seccomp and profiles/narrowing.seccomp by
// tools/seccomp; docs/syscalls.md shows what they allow and why. Everything here is constant data in the program image:
// no heap, no initialisation order, safe from any thread and in a child between clone and exec.
//
// Two ways to narrow: ask KernelFilter() for it (one program, one load, its denials are reported like all others), or
// stack NarrowingFilter() on a filter that is already loaded. Stacked filters all run and the kernel takes the most
// severe answer: KILL_PROCESS > ERRNO > USER_NOTIF > ALLOW. A stacked denial therefore answers by itself, also for
// calls that the lower filter would have reported: it never reaches the listener and is not in a run's denials.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace belljar::plan {

/// Who answers a denied call.
enum class FilterVariant : std::uint8_t {
  kNotify,  ///< The holder of the listener (SECCOMP_RET_USER_NOTIF), who counts it and returns DescribeDenied()'s
            ///< errno.
  kErrno,   ///< The kernel, with the same errno, uncounted: for hosts where no listener can be had.
};

/// What a run loses beyond the kernel profile. The rules of each are in profiles/narrowing.seccomp.
struct Narrowing {
  bool no_uncounted = false;  ///< No memory that no process maps: for hosts where memory is only watched.
  bool no_others = false;  ///< Nothing by number of a process but of the caller itself: priorities, limits, affinity.
  /// For the form without namespaces, with no_others: no sockets but pairs, no metadata of host files, no IPC.
  bool no_host_reach = false;

  bool operator==(const Narrowing&) const = default;
};

/// The allow-list of level kernel, with `narrowing` merged into it. Lives as long as the program.
std::span<const sock_filter> KernelFilter(FilterVariant variant, const Narrowing& narrowing = {});

/// Only the narrowing, to be stacked on a loaded filter; everything else is allowed by it. Empty when nothing is
/// narrowed.
std::span<const sock_filter> NarrowingFilter(const Narrowing& narrowing);

/// What the answerer of notifications needs to know about a call.
struct DeniedCall {
  std::string_view name;    ///< "mount"; "unknown" for a number that nobody knows.
  int answer_errno;         ///< What to answer, e.g. EPERM. Positive.
  std::string_view reason;  ///< Why the profile refuses it, one line; may be empty.
};

/// `nr` is seccomp_data.nr of a notification from KernelFilter(kNotify, narrowing). A number that the filter never
/// reports gets ENOSYS. The narrowing changes only the reason.
DeniedCall DescribeDenied(int nr, const Narrowing& narrowing = {});

/// The name of a system call of this architecture, allowed or not; empty when nobody knows it.
std::string_view CallName(int nr);

}  // namespace belljar::plan
