// The receipt: guard by guard, what is enforced, through what, and why not where it is not.
#include <sched.h>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plan/bounds.h"
#include "plan/sections.h"

namespace belljar::plan {
namespace {

// Descriptors on their way in unix sockets are counted for a whole user, and held against the RLIMIT_NOFILE of whoever
// sends one more. With this limit a guest leaves some to programs that have the customary 1024.
constexpr std::uint64_t kMostShared = 512;

// What the kernel keeps at most for each file that a thread waits for. Who looks at the threads (launch/uncounted.cc)
// does not see all that wait: not one that was just woken, for one.
constexpr double kBytesPerPolledFile = 200;
constexpr double kBytesPerDescriptor = 256;      // Of a timer or an instance of epoll.
constexpr double kBytesPerMessage = 144 * 1024;  // What a thread has in the kernel that waits to send it.

constexpr char kWallBy[] = "sandbox init, and the parent behind it";
constexpr char kCommandsCpuTimeBy[] = "RLIMIT_CPU, watcher of each command";
constexpr char kCpuTimeGap[] = "time of children that nobody waited for is not counted";

class Writer {
 public:
  explicit Writer(const Draft& draft) : draft_(draft), facts_(draft.request.facts) {}

  std::vector<GuardReceipt> Write() {
    Namespaces();
    Filters();
    Limits();
    return std::move(guards_);
  }

 private:
  void Held(std::string guard, std::string by) {
    guards_.push_back({std::move(guard), GuardState::kEnforced, std::move(by), {}});
  }
  void Partial(std::string guard, std::string by, std::string reason) {
    guards_.push_back({std::move(guard), GuardState::kPartial, std::move(by), std::move(reason)});
  }
  void Absent(std::string guard, std::string reason) {
    guards_.push_back({std::move(guard), GuardState::kAbsent, {}, std::move(reason)});
  }
  void Off(std::string guard, std::string reason) {
    guards_.push_back({std::move(guard), GuardState::kOff, {}, std::move(reason)});
  }

  void Namespaces();
  void Filters();
  void Limits();
  void NameTerminals();
  void Inotify();
  void Files();
  std::string MemoryGap() const;
  void Limit(const char* guard, std::uint64_t value, const std::string& cgroup, bool watched, const char* watched_by,
             const std::string& gap);

  const Draft& draft_;
  const sys::HostFacts& facts_;
  std::vector<GuardReceipt> guards_;
};

void Writer::Namespaces() {
  const std::uint32_t flags = draft_.builder.head.clone_flags;
  const bool kernel = draft_.choice.level >= Level::kKernel;
  const std::string lack = draft_.choice.weaker_because;
  if (draft_.enters_user_namespace) {
    Held("user namespace",
         draft_.Privileged() ? "unshare(CLONE_NEWUSER) after the change of ids" : "clone(CLONE_NEWUSER)");
  } else if (kernel) {
    Absent("user namespace", lack.empty() ? facts_.user_namespaces_lack : lack);
  }
  const std::tuple<const char*, unsigned, const char*> kinds[] = {
      {"mount namespace", CLONE_NEWNS, "clone(CLONE_NEWNS)"},
      {"pid namespace", CLONE_NEWPID, "clone(CLONE_NEWPID)"},
      {"ipc namespace", CLONE_NEWIPC, "clone(CLONE_NEWIPC)"},
      {"uts namespace", CLONE_NEWUTS, "clone(CLONE_NEWUTS)"},
  };
  for (const auto& [guard, flag, by] : kinds) {
    if ((flags & flag) != 0) {
      Held(guard, by);
    } else if (kernel) {
      Absent(guard, lack);
    }
  }
  if (draft_.OwnRoot()) {
    Held("cgroup namespace", "unshare(CLONE_NEWCGROUP) in the run's cgroup");
  } else if (kernel) {
    Absent("cgroup namespace", lack);
  }
  if (draft_.own_network) {
    Held("network", "own network namespace, loopback only");
  } else if (draft_.request.policy.network.mode == NetworkMode::kHost) {
    Off("network", "the policy shares the host's network");
  } else {
    Held("network", "seccomp (no sockets), landlock (no TCP)");
  }
  if (!kernel) return;
  if (draft_.OwnRoot()) {
    Held("root filesystem", "own root, read-only, pivot_root");
  } else {
    Partial("root filesystem", "landlock over the host's tree", "names and attributes of host files can be seen");
  }
  if (std::ranges::none_of(draft_.request.policy.files.mounts,
                           [](const Mount& mount) { return mount.access == Access::kReadWrite; })) {
    return;
  }
  if (draft_.request.policy.files.protect.empty()) {
    Off("protected files", "files.protect is empty");
  } else if (!draft_.OwnRoot()) {
    Absent("protected files", "without mounts of its own a guest that may write a directory may write all of it");
  } else if (!draft_.unsearched_paths.empty()) {
    Partial("protected files", fmt::format("read-only mounts: {}", fmt::join(draft_.protected_paths, ", ")),
            fmt::format("too many files to look for hard links to them: {}", fmt::join(draft_.unsearched_paths, ", ")));
  } else {
    Held("protected files", draft_.protected_paths.empty()
                                ? "nothing is there to protect"
                                : fmt::format("read-only mounts: {}", fmt::join(draft_.protected_paths, ", ")));
  }
}

// What a whole user has of them only once.
void Writer::Inotify() {
  if (!draft_.OwnRoot()) {
    Held("inotify limits", "seccomp (no inotify)");
  } else if (!draft_.enters_user_namespace) {
    Absent("inotify limits", "they are those of a user namespace");
  } else if (facts_.read_only_sysctls) {
    Absent("inotify limits", "/proc/sys is read-only here");
  } else {
    Held("inotify limits", "settings of the user namespace");
  }
}

void Writer::Filters() {
  const bool kernel = draft_.choice.level >= Level::kKernel;
  if (kernel) {
    if (facts_.seccomp_listener) {
      Held("seccomp", "allow-list with a listener");
    } else {
      Partial("seccomp", "allow-list", "refused calls are not counted: another listener is above this process");
    }
    if (facts_.landlock_abi == 0) {
      Absent("landlock", "not in this kernel's list of security modules (boot parameter lsm=)");
    } else if (facts_.landlock_abi < 6) {
      Partial("landlock", fmt::format("ABI {}", facts_.landlock_abi), "scopes for signals and sockets came with ABI 6");
    } else {
      Held("landlock", fmt::format("ABI {}, scopes for signals and abstract sockets", facts_.landlock_abi));
    }
  }
  if (draft_.request.command == CommandKnown::kMany) {
    if (draft_.builder.head.scoped != 0) {
      Held("commands apart", fmt::format("landlock ABI {}, a scope of signals for each", facts_.landlock_abi));
    } else {
      Partial("commands apart", "a steward for each",
              "one can signal the others, as scopes for signals came with ABI 6");
    }
  }
  if (draft_.request.tracing == Tracing::kOn) Held("trace", "ptrace and seccomp(SECCOMP_RET_TRACE): records only");
  const bool holds_some = draft_.Privileged() || draft_.HasNamespaces();
  Held("capabilities", holds_some ? "all dropped, bounding set included" : "none held");
  Held("no_new_privs", "prctl(PR_SET_NO_NEW_PRIVS)");
  if (!kernel) return;
  if (draft_.Privileged()) {
    Held("identity", fmt::format("host uid {}, no groups", draft_.out.guest_uid));
  } else {
    std::string gap = "supplementary groups stay, as they can't be dropped without privileges";
    if (draft_.request.policy.limits.open_files > kMostShared) {
      gap += fmt::format(
          "; with more than {} open_files a guest can use up the descriptors that its user may have in flight",
          kMostShared);
    }
    Partial("identity", fmt::format("the caller's own uid {}, seen as {} inside", facts_.uid, draft_.InsideId()), gap);
  }
  Inotify();
}

// What a cgroup does not count and nobody else can, either.
std::string Writer::MemoryGap() const {
  if (draft_.choice.level < Level::kKernel)
    return "locks of open files are not counted without a filter of system calls";
  if (draft_.request.policy.network.mode == NetworkMode::kHost) {
    return "replies and connections that wait in sockets are not counted in the host's network";
  }
  // Both unlimited is more than fits, so in floating point.
  const belljar::Limits& limits = draft_.request.policy.limits;
  const double threads = static_cast<double>(limits.processes);
  const double polled = threads * static_cast<double>(std::min(limits.open_files, kMostPolledByThread));
  const double open = std::min(threads * static_cast<double>(limits.open_files), static_cast<double>(kMostOpen));
  const double bytes = polled * kBytesPerPolledFile + open * kBytesPerDescriptor + threads * kBytesPerMessage;
  if (bytes > static_cast<double>(limits.memory) / 2) {
    return "what the kernel has for timers, event counters and threads that wait in poll() and sendmsg() is not "
           "counted: fewer limits.processes and open_files bound that";
  }
  return {};
}

void Writer::Limit(const char* guard, std::uint64_t value, const std::string& cgroup, bool watched,
                   const char* watched_by, const std::string& gap) {
  if (value == kUnlimited) {
    Off(guard, "unlimited in the policy");
  } else if (!watched) {
    Held(guard, cgroup);
  } else {
    Partial(guard, watched_by, gap);
  }
}

// To the line before. What is typed into a terminal, the kernel's own workers carry to who reads it.
void Writer::NameTerminals() {
  GuardReceipt& last = guards_.back();
  if (last.state != GuardState::kEnforced && last.state != GuardState::kPartial) return;
  last.state = GuardState::kPartial;
  last.reason += last.reason.empty() ? "" : "; ";
  last.reason += "what the kernel does for terminals that the guest makes is counted for nobody";
}

void Writer::Limits() {
  const belljar::Limits& limits = draft_.request.policy.limits;
  const WatchedLimits& watched = draft_.out.watched;
  const std::string version = facts_.cgroups.version == sys::CgroupVersion::kV2 ? "cgroup v2 " : "cgroup v1 ";
  if (limits.wall_ns == kUnlimited) {
    Off("wall limit", "unlimited in the policy");
  } else {
    Held("wall limit", kWallBy);
  }
  const std::string lack = "; " + facts_.cgroups.lack;
  Limit("memory limit", limits.memory, version + "memory, watcher of record locks and socket buffers", watched.memory,
        "watcher every 10 ms",
        "bursts between two looks, private filesystems and what the kernel holds for it (page tables, pipes, unix "
        "sockets, ipc objects, watches) are not seen" +
            std::string(facts_.landlock_abi == 0 ? ", nor are shared mappings of /dev/zero" : "") + lack);
  if (const std::string gap = MemoryGap(); limits.memory != kUnlimited && !watched.memory && !gap.empty()) {
    guards_.back().state = GuardState::kPartial;
    guards_.back().reason = gap;
  }
  const bool counted = draft_.enters_user_namespace;
  Limit("process limit", limits.processes, version + "pids", watched.processes,
        counted ? "RLIMIT_NPROC of the user namespace, watcher" : "watcher every 10 ms",
        (counted ? "told late" : "a burst between two looks is seen late") + lack);
  const bool many = draft_.request.command == CommandKnown::kMany;
  Limit("cpu_time limit", limits.cpu_time_ns, version + "cpuacct", many || watched.cpu_time,
        many ? kCommandsCpuTimeBy : "RLIMIT_CPU, watcher", kCpuTimeGap + (many ? std::string() : lack));
  NameTerminals();
  if (limits.cpus_milli != kUnlimited) {
    if (!draft_.out.cgroup_paths.empty() && !facts_.cgroups.cpu.empty()) {
      Held("cpus limit", version + "cpu");
      NameTerminals();
    } else {
      Partial("cpus limit", "CPU affinity", "whole CPUs only; " + facts_.cgroups.lack);
    }
  }
  if (draft_.HasNamespaces()) {
    Held("disk limit", "size of private tmpfs");
    for (const Mount& mount : draft_.request.policy.files.mounts) {
      if (mount.access != Access::kReadWrite) continue;
      guards_.back().state = GuardState::kPartial;
      guards_.back().reason = "writable mounts are bounded by file_size alone";
      break;
    }
  } else {
    Limit("disk limit", limits.disk, "", true, "RLIMIT_FSIZE, watcher every 50 ms",
          "bursts between two looks and files that are open but unlinked are not seen");
  }
  Files();
}

void Writer::Files() {
  Limit("files limit", draft_.request.policy.limits.files, "inodes of private tmpfs", !draft_.HasNamespaces(),
        "watcher every 50 ms", "bursts between two looks are not seen");
}

}  // namespace

Receipt WriteReceipt(const Draft& draft) {
  return {.level = draft.choice.level,
          .backend = "native",
          .form = std::string(Name(draft.choice.form)),
          .host = draft.request.facts.kernel,
          .guards = Writer(draft).Write(),
          // At level process all of the host is there anyway.
          .brought = draft.choice.level >= Level::kKernel ? draft.program.brought : std::vector<Brought>()};
}

void AddCommandsLimits(const Limits& limits, Receipt& receipt) {
  for (GuardReceipt& guard : receipt.guards) {
    if (guard.state != GuardState::kOff) continue;
    if (guard.guard == "wall limit" && limits.wall_ns != kUnlimited) {
      guard = {guard.guard, GuardState::kEnforced, kWallBy, {}};
    } else if (guard.guard == "cpu_time limit" && limits.cpu_time_ns != kUnlimited) {
      guard = {guard.guard, GuardState::kPartial, kCommandsCpuTimeBy, kCpuTimeGap};
    }
  }
}

}  // namespace belljar::plan
