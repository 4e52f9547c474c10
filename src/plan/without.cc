#include "plan/without.h"

#include <linux/mount.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "plan/opened_plan.h"
#include "sys/files.h"

namespace belljar::plan {
namespace {

constexpr std::array<RemovableGuard, 23> kGuards = {{
    {"seccomp", "no filter of system calls"},
    {"landlock", "no Landlock rules and scopes"},
    {"capabilities", "capabilities of its user namespace are kept"},
    {"no_new_privs", "exec may give privileges"},
    {"identity", "the guest keeps the caller's uid, root's too"},
    {"user namespace", "the guest stays in the host's user namespace"},
    {"pid namespace", "the host's process numbers"},
    {"ipc namespace", "the host's SysV objects and message queues"},
    {"uts namespace", "the host's name"},
    {"cgroup namespace", "the host's view of cgroups"},
    {"network", "the host's network namespace"},
    {"root filesystem", "the host's directories in it, writable, with /sys and all of /dev"},
    {"read-only mounts", "all mounts writable, the root not sealed"},
    {"mount attributes", "no nosuid, nodev, noexec"},
    {"masks", "nothing of /proc is covered"},
    {"descriptors", "inherited descriptors stay open"},
    {"environment", "the caller's arguments and variables are not wiped from init"},
    {"undumpable init", "init's memory and descriptors are open to its own user"},
    {"rlimits", "no limits per process: open files, locked memory, core dumps, queues"},
    {"memory limit", "no limit of memory"},
    {"process limit", "no limit of processes"},
    {"cpu_time limit", "CPU time is not looked at by the parent"},
    {"disk limit", "private filesystems of any size"},
}};

std::string_view left_out;  // One of kGuards, or empty.

void ClearAttributes(OpenedPlan& cut, std::uint64_t bits) {
  for (Step& step : cut.steps()) {
    if (step.op == Op::kBind || step.op == Op::kTmpfs) step.value &= ~bits;
  }
}

void KeepIdentity(OpenedPlan& cut) {
  cut.Drop(Op::kSetIds);
  for (Step& step : cut.steps()) {
    if (step.op == Op::kUserNamespace) step.text = step.more = cut.Intern("1000 0 1");
  }
}

void KeepUserNamespace(OpenedPlan& cut) {
  std::vector<Step>& steps = cut.steps();
  if (std::ranges::find(steps, Op::kUserNamespace, &Step::op) == steps.end()) {
    // Without privileges it comes first, and what follows needs it.
    cut.head().clone_flags &= ~static_cast<std::uint32_t>(CLONE_NEWUSER);
    cut.Drop(Op::kMapIds);
    return;
  }
  cut.Drop(Op::kUserNamespace, Op::kDropCapabilities);
  // As the compiler does where there is none: the bounding set while there is power to, the rest by the change of ids.
  const auto ids = std::ranges::find(steps, Op::kSetIds, &Step::op);
  if (ids == steps.end()) return;
  steps.insert(ids, Step{.op = Op::kDropCapabilities, .slot = -1, .value = 2});
  const auto promise = std::ranges::find(steps, Op::kNoNewPrivileges, &Step::op);
  steps.insert(promise, Step{.op = Op::kDropCapabilities, .slot = -1, .value = 0});
}

void KeepProcesses(OpenedPlan& cut) {
  cut.head().clone_flags &= ~static_cast<std::uint32_t>(CLONE_NEWPID);
  cut.head().init_is_pid1 = 0;
  cut.steps().insert(cut.steps().begin(), Step{.op = Op::kSubreaper, .slot = -1});
}

void KeepNetwork(OpenedPlan& cut) {
  cut.head().clone_flags &= ~static_cast<std::uint32_t>(CLONE_NEWNET);
  cut.plan().janitor_makes_network = false;
  cut.Drop(Op::kJoinNetwork, Op::kLoopback);
  cut.Drop(Op::kSocketDiag, Op::kNetworkAhead);
  cut.head().network_ahead = 0;
}

// The host's directories in place of the few that a root from nothing has, all of them as writable as on the host.
void KeepHostTree(OpenedPlan& cut) {
  std::vector<Step>& steps = cut.steps();
  auto at = std::ranges::find(steps, Op::kSealRoot, &Step::op);
  if (at == steps.end()) return;
  const auto direct = static_cast<std::uint64_t>(Reach::kDirect);
  for (const char* path : {"/var", "/etc", "/sys", "/dev", "/usr", "/run", "/home", "/root"}) {
    if (sys::Status(path).kind != sys::FileKind::kDirectory) continue;
    const std::uint32_t text = cut.Intern(path);
    at = steps.insert(at, {Step{.op = Op::kMountPoint, .slot = -1, .text = text, .more_value = direct},
                           Step{.op = Op::kBind, .slot = -1, .text = text, .more = text, .more_value = direct}}) +
         2;
  }
}

void KeepDisk(OpenedPlan& cut) {
  const auto size = [&](std::string_view mode) {
    std::string options;
    for (const std::string_view part :
         {std::string_view("size"), std::string_view("1g"), std::string_view("mode"), mode}) {
      options.append(part).push_back('\0');
    }
    return cut.Intern(options);
  };
  for (Step& step : cut.steps()) {
    if (step.op == Op::kTmpfs && (step.value & MOUNT_ATTR_NOEXEC) == 0) step.more = size("1777");
  }
  cut.plan().watched.disk = false;
}

void KeepLimit(CompiledPlan& plan, std::string_view guard) {
  if (guard == "memory limit") {
    plan.cgroup_limits.memory = kUnlimited;
    plan.watched.memory = false;
    plan.watches_uncounted = false;
  } else if (guard == "process limit") {
    plan.cgroup_limits.processes = kUnlimited;
    plan.watched.processes = false;
  } else if (guard == "cpu_time limit") {
    plan.counts_cpu_time = false;
    plan.watched.cpu_time = false;
  }
}

void DropFilters(OpenedPlan& cut, std::string_view guard) {
  if (guard == "seccomp") cut.Drop(Op::kSeccomp);
  if (guard == "landlock") cut.Drop(Op::kLandlockRules, Op::kLandlockAllow, Op::kLandlockEnforce, Op::kScopeSignals);
  if (guard == "capabilities") cut.Drop(Op::kDropCapabilities);
  if (guard == "no_new_privs") cut.Drop(Op::kNoNewPrivileges);
  if (guard == "descriptors") {
    cut.Drop(Op::kCloseForeign);
    cut.Drop(Op::kCloseFds);
  }
  if (guard == "environment") cut.Drop(Op::kHideCaller);
  if (guard == "undumpable init") cut.Drop(Op::kNoDump);
  if (guard == "rlimits") cut.Drop(Op::kRlimit, Op::kCommandRlimit);
}

void DropNamespaces(OpenedPlan& cut, std::string_view guard) {
  if (guard == "user namespace") KeepUserNamespace(cut);
  if (guard == "pid namespace") KeepProcesses(cut);
  if (guard == "network") KeepNetwork(cut);
  if (guard == "cgroup namespace") cut.Drop(Op::kCgroupNamespace);
  if (guard == "ipc namespace") cut.head().clone_flags &= ~static_cast<std::uint32_t>(CLONE_NEWIPC);
  if (guard == "uts namespace") {
    cut.head().clone_flags &= ~static_cast<std::uint32_t>(CLONE_NEWUTS);
    cut.Drop(Op::kHostname);  // It would be the host's.
  }
}

void DropFiles(OpenedPlan& cut, std::string_view guard) {
  if (guard == "root filesystem") KeepHostTree(cut);
  if (guard == "masks") cut.Drop(Op::kMask);
  if (guard == "mount attributes") ClearAttributes(cut, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
  if (guard == "disk limit") KeepDisk(cut);
  if (guard != "read-only mounts") return;
  cut.Drop(Op::kReadOnly, Op::kSealRoot);
  ClearAttributes(cut, MOUNT_ATTR_RDONLY);
}

}  // namespace

std::span<const RemovableGuard> RemovableGuards() { return kGuards; }

Expected<void> LeaveOut(std::string_view guard) {
  const auto found = std::ranges::find(kGuards, guard, &RemovableGuard::name);
  if (found == kGuards.end() && !guard.empty()) {
    std::string names;
    for (const RemovableGuard& known : kGuards) names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
    return std::unexpected(Error{.step = "--without",
                                 .message = fmt::format("no guard is called '{}'", guard),
                                 .hint = "it can be one of: " + names});
  }
  left_out = guard.empty() ? std::string_view() : found->name;
  return {};
}

void ApplyLeftOut(CompiledPlan& plan) {
  if (left_out.empty()) return;
  KeepLimit(plan, left_out);
  OpenedPlan cut(plan);
  if (left_out == "identity") KeepIdentity(cut);
  DropFilters(cut, left_out);
  DropNamespaces(cut, left_out);
  DropFiles(cut, left_out);
  cut.Close();
}

}  // namespace belljar::plan
