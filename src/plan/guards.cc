// Who the guest is and what it may ask of the kernel.
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>

#include <fmt/format.h>

#include "plan/seccomp_filter.h"
#include "plan/sections.h"
#include "plan/traced_calls.h"

namespace belljar::plan {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr char kOomScore[] = "500";

std::string IdLine(unsigned inside, unsigned outside) { return fmt::format("{} {} 1", inside, outside); }

void AddRlimit(Draft& draft, int resource, std::uint64_t limit) {
  draft.builder.Add(Op::kRlimit, {.value = static_cast<std::uint64_t>(resource), .more_value = limit});
}

}  // namespace

void AddIdentity(Draft& draft) {
  Builder& builder = draft.builder;
  builder.Add(Op::kHideCaller);
  // SECURITY: init is a copy of a caller that may have other runs under way. As long as it held their pipes and control
  // sockets, their guests would not see the end of their input, nor their inits that of their caller.
  builder.Add(Op::kCloseForeign);
  builder.Add(Op::kDieWithParent);
  if (draft.out.cgroup_entry == sys::CgroupEntry::kJoin) {
    for (std::size_t i = 0; i < draft.out.cgroup_paths.size(); ++i) {
      builder.Add(Op::kJoinCgroup, {.slot = kFirstExtraSlot + static_cast<int>(i)});
    }
  }
  builder.Add(Op::kOomScore, {.text = kOomScore});
  if (draft.HasNamespaces()) {
    // SysV memory would outlive the run otherwise, also at level process.
    builder.head.clone_flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC;
    if (draft.OwnRoot()) builder.head.clone_flags |= CLONE_NEWUTS;
    const bool ahead = draft.out.network_ahead || draft.out.janitor_makes_network;
    if (draft.own_network && !ahead) builder.head.clone_flags |= CLONE_NEWNET;
    builder.head.network_ahead = draft.out.network_ahead ? 1 : 0;
    if (!draft.Privileged()) {
      builder.head.clone_flags |= CLONE_NEWUSER;
      // At level process the guest stays who its caller is.
      const unsigned inside_uid = draft.OwnRoot() ? kGuestId : draft.request.facts.uid;
      const unsigned inside_gid = draft.OwnRoot() ? kGuestId : draft.request.facts.gid;
      builder.Add(Op::kMapIds, {.text = IdLine(inside_uid, draft.request.facts.uid),
                                .more = IdLine(inside_gid, draft.request.facts.gid)});
    }
    if (draft.OwnRoot()) builder.Add(Op::kCgroupNamespace);
    builder.head.init_is_pid1 = 1;
  } else {
    builder.Add(Op::kSubreaper);
  }
  // SECURITY: after the id maps, whose files an undumpable process may not write, and before anything of the guest's.
  builder.Add(Op::kNoDump);
}

void AddLimits(Draft& draft) {
  const Limits& limits = draft.request.policy.limits;
  AddRlimit(draft, RLIMIT_CORE, 1);  // Not 0, with which a host's core_pattern program would still be started.
  // Where the disk limit is only watched, one file at least can't go beyond it.
  const std::uint64_t file_size = draft.out.watched.disk ? std::min(limits.file_size, limits.disk) : limits.file_size;
  if (file_size != kUnlimited) AddRlimit(draft, RLIMIT_FSIZE, file_size);
  // Rounded up to whole seconds: a per-process net below the exact, per-sandbox limit that the parent keeps. In a live
  // sandbox each command sets its own, because init lives long.
  const bool many = draft.request.command == CommandKnown::kMany;
  if (limits.cpu_time_ns != kUnlimited && !many) AddRlimit(draft, RLIMIT_CPU, limits.cpu_time_ns / kSecond + 1);
  AddRlimit(draft, RLIMIT_MEMLOCK, 64 * 1024);
  AddRlimit(draft, RLIMIT_RTPRIO, 0);
  AddRlimit(draft, RLIMIT_SIGPENDING, 4096);  // Counted per user: without it a guest could take all of its caller's.
  AddRlimit(draft, RLIMIT_MSGQUEUE, draft.OwnRoot() ? 409'600 : 0);  // Half of what a user usually has.
  if (draft.out.watched.processes && draft.enters_user_namespace) {
    // Counted per user namespace since Linux 5.14, so it is this sandbox's own. One more than allowed: that the watcher
    // sees more than allowed is what tells a refused fork from a full house.
    AddRlimit(draft, RLIMIT_NPROC, limits.processes + draft.out.own_tasks + 1);
  }
  const bool needs_affinity = limits.cpus_milli != kUnlimited && draft.out.cgroup_paths.empty();
  if (needs_affinity) draft.builder.Add(Op::kAffinity, {.value = (limits.cpus_milli + 999) / 1000});
}

void AddPrivilegeDrop(Draft& draft) {
  Builder& builder = draft.builder;
  if (draft.OwnRoot()) builder.Add(Op::kHostname, {.text = "belljar"});
  if (draft.own_network) {
    builder.Add(draft.out.network_ahead           ? Op::kNetworkAhead
                : draft.out.janitor_makes_network ? Op::kJoinNetwork
                                                  : Op::kLoopback);
  }
  if (draft.own_network && draft.out.watches_uncounted) builder.Add(Op::kSocketDiag);
  if (draft.request.streams == Streams::kTerminal) builder.Add(Op::kTerminal);
  AddLimits(draft);
  AddLandlock(draft);
  if (draft.Privileged() && draft.OwnRoot()) {
    // SECURITY: ids first, user namespace second: all other namespaces then belong to the host's, and whatever power a
    // guest might win in its own user namespace is none over them.
    // Without a user namespace to come, the bounding set has to go while there is still a capability to do it with.
    if (!draft.enters_user_namespace) builder.Add(Op::kDropCapabilities, {.value = 2});
    builder.Add(Op::kSetIds, {.value = draft.out.guest_uid, .more_value = draft.out.guest_gid});
    if (draft.enters_user_namespace) {
      builder.Add(Op::kUserNamespace,
                  {.text = IdLine(kGuestId, draft.out.guest_uid), .more = IdLine(kGuestId, draft.out.guest_gid)});
    }
  }
  // Without privileges and namespaces there is no capability to begin with, and none is needed to say so.
  const bool gone = draft.Privileged() && draft.OwnRoot() && !draft.enters_user_namespace;
  const bool holds_some = (draft.Privileged() || draft.HasNamespaces()) && !gone;
  builder.Add(Op::kDropCapabilities, {.value = holds_some ? 1U : 0U});
  builder.Add(Op::kNoNewPrivileges);
  if (!draft.HasNamespaces() && draft.request.facts.landlock_abi >= kLandlockSignalScope) {
    builder.Add(Op::kScopeSignals);
    builder.head.scoped = 1;
  }
  // Once more: a change of ids takes the first one back.
  builder.Add(Op::kDieWithParent);
  builder.Add(Op::kCloseFds);
}

void AddCommand(Draft& draft) {
  Builder& builder = draft.builder;
  const bool terminal = draft.request.streams == Streams::kTerminal;
  builder.head.terminal = terminal ? 1 : 0;
  builder.Add(Op::kNewSession);
  builder.Add(Op::kStdio);
  builder.Add(Op::kWorkdir, {.text = draft.workdir});
  const bool traced = draft.request.tracing == Tracing::kOn;
  draft.out.traced = traced;
  if (traced) builder.Add(Op::kTraceMe);
  if (draft.choice.level >= Level::kKernel) {
    if (draft.request.facts.landlock_abi > 0) builder.Add(Op::kLandlockEnforce);
    if (traced) builder.Add(Op::kTraceFilter);
    const bool bare = draft.choice.form == Form::kLandlockOnly;
    const bool others = bare || draft.request.command == CommandKnown::kMany;
    const Narrowing narrowing{.no_uncounted = draft.out.watched.memory, .no_others = others, .no_host_reach = bare};
    const bool listen = draft.request.facts.seccomp_listener;
    builder.SetFilter(KernelFilter(listen ? FilterVariant::kNotify : FilterVariant::kErrno, narrowing));
    // SECURITY: the last before exec but for a lower limit: it forbids most of what the steps before it do.
    builder.Add(Op::kSeccomp, {.value = listen ? 1U : 0U});
  }
  if (traced) builder.SetTraceFilter(TraceFilter());
  if (traced && draft.choice.level < Level::kKernel) builder.Add(Op::kTraceFilter);
  if (draft.choice.level < Level::kKernel && draft.out.watched.memory) {
    // Level process has no filter; this is only about memory that no process maps and no watcher would see.
    builder.SetFilter(NarrowingFilter({.no_uncounted = true}));
    builder.Add(Op::kSeccomp);
  }
  // After the filter, whose listener could not be handed over below it: descriptors on their way count per user.
  const std::uint64_t open_files = draft.request.policy.limits.open_files;
  if (open_files != kUnlimited) builder.Add(Op::kCommandRlimit, {.value = RLIMIT_NOFILE, .more_value = open_files});
  builder.Add(Op::kExec);
}

}  // namespace belljar::plan
