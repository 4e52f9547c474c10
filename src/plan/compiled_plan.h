// plan/compiled_plan.h: a plan together with what the parent side has to do around it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <belljar/policy.h>
#include <belljar/result.h>

#include "plan/launch_plan.h"
#include "sys/cgroup.h"

namespace belljar::plan {

/// Which set of mechanisms a level is reached by.
enum class Form : std::uint8_t {
  kNamespaces,         ///< kernel: own namespaces and root, Landlock behind them
  kLandlockOnly,       ///< kernel without user namespaces: Landlock and seccomp over the host's tree
  kProcessNamespaces,  ///< process, with a pid namespace that makes killing certain
  kProcessPlain,       ///< process without any namespace
};
std::string_view Name(Form form);

/// One kind of limit is kept either by a cgroup, or by rlimits and a watcher in the parent.
struct WatchedLimits {
  bool memory = false;
  bool processes = false;
  bool cpu_time = false;  ///< Always the parent's; true when there is no cgroup to read it from.
  bool disk = false;
};

/// A user namespace that the parent makes so that a mounted directory's owner is the guest.
struct IdMap {
  uid_t file_uid = 0;
  gid_t file_gid = 0;
};

/// What files.protect names, as it was on the host.
struct Guarded {
  std::string target;  ///< Inside.
  std::string source;
  dev_t device = 0;
  ino_t inode = 0;
  auto operator<=>(const Guarded&) const = default;
};

/// A tree of the host and where the guest sees it.
struct Shown {
  std::string source;
  std::string target;
};

/// What the patterns of files.hide stood for.
struct HiddenNames {
  std::vector<std::string> patterns = {};
  std::vector<Shown> trees = {};
  std::vector<std::string> kernel = {};
  std::vector<std::string> found = {};
};

/// Another program that makes namespaces and root, and starts init in them (plan/bwrap.h).
struct Walls {
  std::string program;                 ///< Absolute.
  std::vector<std::string> arguments;  ///< Without itself and the command.
  std::vector<std::string> files;      ///< Contents; each in a slot behind those of Op::kBecome.
};

/// A steward of a live sandbox that waits for a command, and the process for that. Those that run one are the guest's
/// to pay for.
inline constexpr std::uint64_t kReadyTasks = 2;

struct CompiledPlan {
  Level level = Level::kKernel;
  Form form = Form::kNamespaces;
  std::vector<std::uint64_t> block;  ///< The LaunchPlan; 64-bit words only for their alignment.
  Receipt receipt;
  uid_t guest_uid = 0;  ///< On the host.
  gid_t guest_gid = 0;
  std::vector<std::string> cgroup_paths;  ///< Empty: no cgroup.
  std::string cgroup_name;
  sys::CgroupLimits cgroup_limits;
  std::uint64_t own_tasks = 1;  ///< What the cgroup counts beside the guest's: init, who makes its walls, kReadyTasks.
  sys::CgroupEntry cgroup_entry = sys::CgroupEntry::kClone;
  std::vector<IdMap> id_maps;          ///< In the slots behind the cgroup's.
  bool protects = false;               ///< There is a writable mount.
  std::string home;                    ///< The caller's.
  std::vector<Guarded> guarded;        ///< Protected in it; sorted.
  std::optional<HiddenNames> hidden;   ///< None where files.hide has no patterns.
  std::vector<std::string> held;       ///< Paths of the host on the way to those, and to mounts inside others.
  bool by_launcher = false;            ///< Init is made by the launcher, which also does the janitor's work.
  bool network_ahead = false;          ///< The launcher has a network namespace ready.
  bool janitor_makes_network = false;  ///< The costliest namespace, made beside the start instead of on its way.
  std::string private_directory;       ///< To be made on the host before the start and removed after it; may be empty.
  WatchedLimits watched;
  /// The parent looks at what the kernel holds for the guest and charges to nobody (launch/uncounted.h).
  bool watches_uncounted = false;
  bool own_ipc = false;          ///< SysV objects are gone with the guest.
  bool own_network = false;      ///< All sockets in the guest's network namespace are the guest's.
  bool counts_cpu_time = false;  ///< The parent looks at it and ends the run.
  bool traced = false;           ///< The command waits for a tracer before it starts.
  std::optional<Walls> walls;    ///< None: init makes them.

  const LaunchPlan& plan() const { return *reinterpret_cast<const LaunchPlan*>(block.data()); }
};

}  // namespace belljar::plan
