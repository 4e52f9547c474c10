#include "plan/form.h"

#include <fmt/format.h>

namespace belljar::plan {
namespace {

// What of the policy needs a mount namespace; empty when nothing does.
std::string NeedsMounts(const Policy& policy) {
  if (policy.files.system == SystemFiles::kNone) return "files.system = \"none\" needs a root of its own";
  if (!policy.files.hide.empty()) return "files.hide needs a mount namespace";
  for (const Mount& mount : policy.files.mounts) {
    if (mount.source != mount.target) {
      return fmt::format("mounting {} at {} needs a mount namespace", mount.source, mount.target);
    }
  }
  return {};
}

// What of the policy is not true of the host's files as they are.
std::string NeedsOwnRoot(const Policy& policy) {
  for (const Mount& mount : policy.files.mounts) {
    if (mount.access == Access::kReadOnly) return fmt::format("a read-only {} needs a wall around files", mount.target);
  }
  return NeedsMounts(policy);
}

// Why the policy can't be met without namespaces; empty when it can.
std::string NeedsNamespaces(const Policy& policy, const sys::HostFacts& facts) {
  if (facts.landlock_abi < kLandlockSignalScope) {
    return fmt::format(
        "without them level kernel needs Landlock ABI {} (Linux 6.12) to keep signals inside; this host has {}",
        kLandlockSignalScope, facts.landlock_abi == 0 ? "none" : std::to_string(facts.landlock_abi));
  }
  if (facts.uid == 0) return "without them the command would run as root";
  if (std::string needs = NeedsMounts(policy); !needs.empty()) return needs;
  if (policy.network.mode == NetworkMode::kHost)
    return "sharing the host's network needs sockets, which this form denies";
  return {};
}

}  // namespace

std::string_view Name(Form form) {
  switch (form) {
    case Form::kNamespaces: return "namespaces";
    case Form::kLandlockOnly: return "landlock-only";
    case Form::kProcessNamespaces: return "process-namespaces";
    case Form::kProcessPlain: return "process-plain";
  }
  return "unknown";
}

Expected<Choice> ChooseForm(const Policy& policy, const sys::HostFacts& facts) {
  const bool namespaces = facts.privileged || facts.user_namespaces;
  std::string lack;
  if (policy.level >= Level::kKernel) {
    if (namespaces && facts.mount_setattr) {
      return Choice{.level = Level::kKernel, .form = Form::kNamespaces, .weaker_because = {}};
    }
    lack = NeedsNamespaces(policy, facts);
    if (lack.empty()) {
      return Choice{.level = Level::kKernel,
                    .form = Form::kLandlockOnly,
                    .weaker_because = namespaces
                                          ? "mount_setattr is not to be had here: boot Linux 5.12 or newer, or let the "
                                            "filter over this process allow the call"
                                          : facts.user_namespaces_lack};
    }
    if (policy.MinLevel() >= Level::kKernel) {
      return std::unexpected(
          Error{.step = "reach level kernel",
                .message = fmt::format("{} not to be had here, and {}",
                                       namespaces ? "mount_setattr is" : "user namespaces are", lack),
                .hint = namespaces ? "Linux 5.15 or newer is needed" : facts.user_namespaces_lack});
    }
  }
  if (const std::string needs = NeedsOwnRoot(policy); !needs.empty()) {
    return std::unexpected(Error{.step = "reach level process",
                                 .message = needs + ", and level process sees the host's files as they are",
                                 .hint = "use level kernel"});
  }
  if (namespaces) return Choice{.level = Level::kProcess, .form = Form::kProcessNamespaces, .weaker_because = lack};
  if (policy.network.mode == NetworkMode::kNone) {
    return std::unexpected(
        Error{.step = "cut the network off",
              .message = "network.mode = \"none\" needs a network namespace, which can't be had here",
              .hint = facts.user_namespaces_lack});
  }
  return Choice{.level = Level::kProcess, .form = Form::kProcessPlain, .weaker_because = facts.user_namespaces_lack};
}

}  // namespace belljar::plan
