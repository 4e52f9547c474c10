// doctor/probe_child.h: tries something in a throw-away child.
//
//   Trial trial = TryInChild(CLONE_NEWUSER | CLONE_NEWNS, [&] {
//     if (mount("none", "/", "tmpfs", 0, nullptr) != 0) return Finding::Failed("mount a tmpfs");
//     return Finding::Passed();
//   });
//
// A probe may be answered by death (a seccomp filter that kills) or not at all, so even the clone with namespace flags
// is done by a child: belljar -> plain child -> child in the new namespaces, which runs the body. Both are gone when
// TryInChild returns, at the latest after the timeout, and both die if the caller does.
//
// The body runs after clone in what may be a multi-threaded program: system calls only, no heap, no locks, no stdio.
// Captures by reference work (the child has a copy of the memory); what it changes is seen by nobody. Thread-safe.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace belljar::doctor {

/// What the body says. `step` must be a literal: child and parent have the same image, so the pointer means the same.
struct Finding {
  const char* step = nullptr;  ///< Null: passed.
  int error = 0;
  std::int64_t value = 0;

  static Finding Passed(std::int64_t value = 0) { return {.value = value}; }
  static Finding Failed(const char* step, int error = errno) { return {.step = step, .error = error}; }
};

/// How it went, seen from outside.
struct Trial {
  enum class End : std::uint8_t { kPassed, kFailed, kKilled, kTimedOut };
  End end = End::kFailed;
  const char* step = "";   ///< kFailed: what failed, e.g. "clone".
  int error = 0;           ///< kFailed: its errno.
  int signal = 0;          ///< kKilled: the signal; SIGSYS means a seccomp filter.
  std::int64_t value = 0;  ///< kPassed: what the body gave.

  bool passed() const { return end == End::kPassed; }
  bool FailedAt(std::string_view name) const { return end == End::kFailed && name == step; }
  /// "mount a tmpfs: Operation not permitted", "killed by signal 31", "no answer in time"; empty when passed.
  std::string Text() const;
};

/// The step named by a Trial whose namespaces could not be made.
inline constexpr const char* kStepClone = "clone";
/// As long as the set-up of a run has: what a busy host does late is not missing.
inline constexpr std::chrono::milliseconds kTrialTimeout{30'000};

namespace internal {
using Body = Finding (*)(const void* context);
Trial TryInChild(unsigned long clone_flags, Body body, const void* context, std::chrono::milliseconds timeout);
}  // namespace internal

/// Runs the body in a child made with these CLONE_NEW* flags (0: none).
template <typename Callable>
Trial TryInChild(unsigned long clone_flags, Callable body, std::chrono::milliseconds timeout = kTrialTimeout) {
  return internal::TryInChild(
      clone_flags, [](const void* context) { return (*static_cast<const Callable*>(context))(); },
      static_cast<const void*>(&body), timeout);
}

/// A clone like fork, but without SIGCHLD (a host program's handler must not see or reap probes) and without the
/// handlers that libraries hook into fork. Returns as fork does; wait for the child with __WALL.
long RawFork(unsigned long clone_flags = 0);

}  // namespace belljar::doctor
