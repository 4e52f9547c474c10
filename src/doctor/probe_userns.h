// doctor/probe_userns.h: can this user make a user namespace, and is it worth anything?
//
//   if (Expected<void> usable = doctor::ProbeUserNamespace(); !usable) FallBack(usable.error().Text());
//
// Two kinds of "no" exist: the kernel refuses to make the namespace (sysctls, a seccomp filter, a chroot), or it makes
// one whose capabilities are void (Ubuntu's AppArmor rule, containers that forbid mount). Only really mounting
// something inside tells. Takes about a millisecond; not cached, since an administrator may change the answer.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <belljar/error.h>

#include "doctor/probe_child.h"

namespace belljar::doctor {

/// Ok, or an Error whose message says why user namespaces are unusable here and whose hint is the fix.
Expected<void> ProbeUserNamespace();

/// The caller's own ids as text for /proc/self/{uid,gid}_map: "0 1000 1". Make it before the clone.
struct OwnIdMap {
  OwnIdMap();
  std::string uid;
  std::string gid;
};

/// In a child in a new user namespace: become root of it. Async-signal-safe.
Finding MapOwnIds(const OwnIdMap& map);
/// In a child in a new mount namespace (if `flags` have CLONE_NEWNS): nothing mounted here appears elsewhere.
Finding DetachMounts(unsigned long flags);

/// How this caller comes to namespaces, as the engine does it: directly with capabilities of the host, else through a
/// user namespace, else not at all.
enum class Way : std::uint8_t { kNone, kThroughUser, kDirect };
inline constexpr const char* kNeedsUserNamespace = "needs a usable user namespace";

/// TryInChild in namespaces that the body has all rights over: ids are mapped, and no mount spreads to the host.
template <typename Callable>
Trial TryInNamespaces(Way way, unsigned long flags, Callable body, std::chrono::milliseconds timeout = kTrialTimeout) {
  const OwnIdMap map;
  const auto prepared = [&] {
    const Finding ready = way == Way::kThroughUser ? MapOwnIds(map) : Finding::Passed();
    if (ready.step != nullptr) return ready;
    if (const Finding apart = DetachMounts(flags); apart.step != nullptr) return apart;
    return body();
  };
  return TryInChild(way == Way::kThroughUser ? flags | CLONE_NEWUSER : flags, prepared, timeout);
}

/// What decides about user namespaces on a host, as read from /proc; absent where the host doesn't have the setting.
struct UserNamespaceFacts {
  std::uint32_t euid = 0;
  std::string program;                              ///< Our own path, for the AppArmor profile.
  std::optional<std::int64_t> max_user_namespaces;  ///< user.max_user_namespaces
  std::optional<std::int64_t> unprivileged_clone;   ///< kernel.unprivileged_userns_clone (Debian, Arch)
  std::optional<std::int64_t> apparmor_restrict;    ///< kernel.apparmor_restrict_unprivileged_userns (Ubuntu)
  std::string apparmor_label;                       ///< Profile this process runs under; empty: none.
  bool seccomp_filtered = false;                    ///< Some seccomp filter is already in force.
  bool kernel_support = true;                       ///< /proc/self/ns/user exists.
};
UserNamespaceFacts ReadUserNamespaceFacts();

/// Names the cause of a trial that did not pass. Pure.
Error ExplainUserNamespace(const Trial& trial, const UserNamespaceFacts& facts);

/// First integer in a small file under /proc or /sys.
std::optional<std::int64_t> ReadNumber(const char* path);
/// A small file as text without its last newline; empty when it can't be read.
std::string ReadText(const char* path);

}  // namespace belljar::doctor
