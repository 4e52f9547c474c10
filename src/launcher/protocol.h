// launcher/protocol.h: what an engine and its launcher say to each other. Plain data; both ends are one build.
//
// The engine sends requests over one SOCK_SEQPACKET pair. Each sandbox has a pair of its own, its handle: there the
// launcher answers, and that the engine closes its end means that the sandbox and all that it has on the host must go.
#pragma once

#include <sys/resource.h>

#include <cstddef>
#include <cstdint>

#include "plan/launch_plan.h"

namespace belljar::launcher {

/// Descriptors that the launcher is started with.
inline constexpr int kRequestsFd = 3;  ///< SOCK_SEQPACKET; its end is the engine's end.
inline constexpr int kOwnerFd = 4;     ///< pidfd of the engine's process: a forked copy of it may keep the socket open.

/// What the sandbox will have on the host, told before it is made: paths one after the other, each ended by NUL, the
/// directory first (it may be empty), then cgroups.
inline constexpr std::size_t kMostLeftovers = 3584;

enum class RequestKind : std::uint32_t {
  kExpect,  ///< Takes a handle. What it leaves behind is removed when the handle closes.
  kStart,   ///< Makes the sandbox of the handle that was taken last for this serial number.
};

struct Request {
  RequestKind kind;
  std::uint32_t serial;  ///< Of the sandbox; the engine counts them.
  std::uint32_t plan_size;
  std::int16_t cgroup;                  ///< Index of the descriptor to be cloned into, or -1.
  std::int16_t slots[plan::kMaxSlots];  ///< Index of the descriptor for each slot of the plan, or -1.
  std::uint32_t leftovers_size;
  char leftovers[kMostLeftovers];
};

/// A kStart carries the plan (a sealed memfd) first.
inline constexpr std::size_t kMostDescriptors = 2 + plan::kMaxSlots;

enum class AnswerKind : std::uint32_t {
  kStarted,  ///< pid; carries a pidfd
  kFailed,   ///< error: there is no init
  kEnded,    ///< status, usage: init is gone, and with it all inside
};

struct Answer {
  AnswerKind kind;
  std::int32_t pid;
  std::int32_t error;
  std::int32_t status;  ///< As from waitpid.
  struct rusage usage;
};

}  // namespace belljar::launcher
