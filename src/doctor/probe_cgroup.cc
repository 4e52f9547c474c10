#include "doctor/probe_cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "base/unique_fd.h"
#include "doctor/probe_child.h"
#include "doctor/probe_userns.h"
#include "sys/cgroup_layout.h"

namespace belljar::doctor {
namespace {

constexpr const char* kMountFix = "as root: mount -t cgroup2 none /sys/fs/cgroup";

struct Controller {
  const char* probe;
  const char* name;
  const char* v1_file;
  const char* v1_value;
  const char* v2_file;  // null: v2 has it in every cgroup
  const char* v2_value;
  std::string sys::CgroupLayout::* directory;
  const char* purpose;
};

// The values are limits that a throw-away child can't reach.
constexpr Controller kControllers[] = {
    {"cgroup memory", "memory", "memory.limit_in_bytes", "1073741824", "memory.max", "1073741824",
     &sys::CgroupLayout::memory, "limits.memory for all processes of a sandbox together; exact out_of_memory verdicts"},
    {"cgroup pids", "pids", "pids.max", "1000", "pids.max", "1000", &sys::CgroupLayout::pids,
     "limits.processes per sandbox; without it only per user, and not for root"},
    {"cgroup cpu", "cpu", "cpu.cfs_quota_us", "100000", "cpu.max", "100000 100000", &sys::CgroupLayout::cpu,
     "limits.cpus as a fraction of CPU time; without it only whole CPUs"},
    {"cgroup cpuacct", "cpuacct", nullptr, nullptr, nullptr, nullptr, &sys::CgroupLayout::cpuacct,
     "limits.cpu_time for all processes of a sandbox together"},
};

int WriteText(const std::string& path, std::string_view text) {
  base::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return errno;
  return ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : errno;
}

bool HasWord(const std::string& text, std::string_view word) {
  return (" " + text + " ").find(fmt::format(" {} ", word)) != std::string::npos;
}

/// An empty cgroup that goes away with its scope. The clock is in its name because two pid namespaces may share a
/// cgroup tree, and then pids are not unique.
class ScratchCgroup {
 public:
  explicit ScratchCgroup(const std::string& parent)
      : path_(fmt::format("{}/belljar-probe-{}-{:x}", parent, ::getpid(),
                          std::chrono::steady_clock::now().time_since_epoch().count())),
        error_(::mkdir(path_.c_str(), 0755) == 0 ? 0 : errno) {}
  ScratchCgroup(const ScratchCgroup&) = delete;
  ScratchCgroup& operator=(const ScratchCgroup&) = delete;
  ~ScratchCgroup() {
    // A process that just died may still be counted for a moment.
    for (int i = 0; error_ == 0 && i < 200 && ::rmdir(path_.c_str()) != 0 && errno == EBUSY; ++i) ::usleep(1000);
  }
  int error() const { return error_; }
  std::string File(std::string_view name) const { return fmt::format("{}/{}", path_, name); }

 private:
  std::string path_;
  int error_;
};

Finding Join(const char* procs) {
  const int fd = ::open(procs, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || ::write(fd, "0", 1) != 1) return Finding::Failed("move a process into a cgroup");
  return Finding::Passed();
}

struct Attempt {
  std::string problem;  // empty: it works
  bool swap = false;
};

// A cgroup that holds processes can't give controllers to those below it, unless it is the root of all.
bool CanSwitchOn(const std::string& parent) {
  if (::access((parent + "/cgroup.subtree_control").c_str(), W_OK) != 0) return false;
  return ::access((parent + "/cgroup.type").c_str(), F_OK) != 0 || ReadText((parent + "/cgroup.procs").c_str()).empty();
}

Attempt TryIn(const std::string& parent, const Controller& controller, bool v2) {
  const ScratchCgroup scratch(parent);
  if (scratch.error() != 0)
    return {fmt::format("can't make a cgroup in {}: {}", parent, std::strerror(scratch.error()))};
  const char* file = v2 ? controller.v2_file : controller.v1_file;
  if (v2 && file != nullptr && !HasWord(ReadText(scratch.File("cgroup.controllers").c_str()), controller.name)) {
    // The first run switches it on where that is allowed.
    if (CanSwitchOn(parent)) return {};
    return {fmt::format("{} is not switched on for cgroups below {}", controller.name, parent)};
  }
  if (file != nullptr) {
    const int error = WriteText(scratch.File(file), v2 ? controller.v2_value : controller.v1_value);
    if (error != 0) return {fmt::format("can't write {} in {}: {}", file, parent, std::strerror(error))};
  } else if (::access(scratch.File(v2 ? "cpu.stat" : "cpuacct.usage").c_str(), R_OK) != 0) {
    return {fmt::format("no CPU accounting below {}", parent)};
  }
  const std::string procs = scratch.File("cgroup.procs");
  const Trial joined = TryInChild(0, [&] { return Join(procs.c_str()); });
  if (!joined.passed()) return {fmt::format("{} ({})", joined.Text(), parent)};
  return {.swap = ::access(scratch.File(v2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes").c_str(), F_OK) == 0};
}

const CgroupHierarchy* HierarchyOf(const std::vector<CgroupHierarchy>& all, const Controller& controller) {
  for (const CgroupHierarchy& one : all) {
    if (!one.v2 && std::ranges::find(one.controllers, controller.name) != one.controllers.end()) return &one;
  }
  for (const CgroupHierarchy& one : all) {
    if (!one.v2) continue;
    if (controller.v2_file == nullptr) return &one;
    if (HasWord(ReadText((one.top + "/cgroup.controllers").c_str()), controller.name)) return &one;
  }
  return nullptr;
}

std::string Fix(const std::vector<CgroupHierarchy>& all, const CgroupHierarchy& hierarchy) {
  if (hierarchy.v2) {
    return ::geteuid() == 0
               ? "start it in a delegated scope: systemd-run --scope -p Delegate=yes belljar …; in a container: "
                 "mount /sys/fs/cgroup read-write with a private cgroup namespace"
               : "start it in a delegated scope: systemd-run --user --scope -p Delegate=yes belljar …";
  }
  // One command for all controllers, aimed at whoever started us: most likely the user's shell.
  std::string places;
  for (const CgroupHierarchy& one : all) {
    for (const Controller& controller : kControllers) {
      const bool wanted = std::ranges::find(one.controllers, controller.name) != one.controllers.end();
      if (wanted && !HasWord(places, one.own)) places += " " + one.own;
    }
  }
  return fmt::format(
      "as root: for d in{0}; do mkdir -p $d/belljar-{1} && chown -R {1} $d/belljar-{1} && echo {2} > "
      "$d/belljar-{1}/cgroup.procs; done",
      places, ::geteuid(), ::getppid());
}

Probe ProbeController(const std::vector<CgroupHierarchy>& all, const Controller& controller,
                      const std::string& chosen) {
  Probe probe{.name = controller.probe, .group = ProbeGroup::kLimits, .purpose = controller.purpose};
  const CgroupHierarchy* hierarchy = HierarchyOf(all, controller);
  if (hierarchy == nullptr) {
    probe.detail = "no cgroup hierarchy here has this controller";
    probe.fix = all.empty() ? std::string(kMountFix)
                            : fmt::format("boot with cgroup_enable={0}, without cgroup_disable={0}", controller.name);
    return probe;
  }
  // Where the engine would go; else our own cgroup, to learn what stands in the way.
  const std::string& place = chosen.empty() ? hierarchy->own : chosen;
  const Attempt attempt = TryIn(place, controller, hierarchy->v2);
  if (!attempt.problem.empty() || chosen.empty()) {
    probe.detail = attempt.problem.empty() ? fmt::format("belljar does not find it at {}", place) : attempt.problem;
    probe.fix = Fix(all, *hierarchy);
    return probe;
  }
  const bool memory = std::string_view(controller.name) == "memory";
  probe.state = ProbeState::kOk;
  probe.detail = fmt::format("{} at {}{}", hierarchy->v2 ? "v2" : "v1", place,
                             !memory        ? ""
                             : attempt.swap ? ", swap included"
                                            : ", swap not counted by this kernel");
  return probe;
}

Probe ProbeKill(const std::vector<CgroupHierarchy>& all) {
  Probe probe{.name = "cgroup.kill",
              .group = ProbeGroup::kLimits,
              .purpose = "ends a whole sandbox at one stroke, however fast it forks"};
  const auto found = std::ranges::find_if(all, &CgroupHierarchy::v2);
  if (found == all.end()) {
    probe.detail = "needs a cgroup v2 tree; a pid namespace does the same";
    return probe;
  }
  const ScratchCgroup scratch(found->own);
  if (scratch.error() != 0) {
    probe.detail = fmt::format("can't make a cgroup in {}: {}; a pid namespace does the same", found->own,
                               std::strerror(scratch.error()));
    return probe;
  }
  const std::string procs = scratch.File("cgroup.procs");
  const std::string kill = scratch.File("cgroup.kill");
  const Trial trial = TryInChild(0, [&] {
    if (const Finding joined = Join(procs.c_str()); joined.step != nullptr) return joined;
    const int fd = ::open(kill.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0 || ::write(fd, "1", 1) != 1) return Finding::Failed("write cgroup.kill");
    ::sleep(1);
    return Finding::Failed("die by cgroup.kill", 0);
  });
  // Success is not to be able to report it.
  if (trial.end == Trial::End::kKilled && trial.signal == SIGKILL) {
    probe.state = ProbeState::kOk;
  } else {
    probe.detail = trial.Text() + "; a pid namespace does the same";
    if (trial.error == ENOENT) probe.fix = "boot Linux 5.14 or newer";
  }
  return probe;
}

}  // namespace

Probes ProbeCgroups() {
  const std::vector<CgroupHierarchy> all =
      ParseCgroups(ReadText("/proc/self/mountinfo"), ReadText("/proc/self/cgroup"));
  const std::string_view kind = CgroupKind(all);
  Probes probes{{.name = "cgroups",
                 .group = ProbeGroup::kLimits,
                 .state = kind == "none" ? ProbeState::kMissing : ProbeState::kOk,
                 .purpose = "limits that hold for a sandbox as a whole",
                 .detail = kind == "hybrid" ? "hybrid: controllers in v1, cgroup.kill in v2" : std::string(kind),
                 .fix = kind == "none" ? kMountFix : ""}};
  const sys::CgroupLayout chosen = sys::FindCgroups();
  for (const Controller& controller : kControllers) {
    probes.push_back(ProbeController(all, controller, chosen.*controller.directory));
  }
  probes.push_back(ProbeKill(all));
  return probes;
}

}  // namespace belljar::doctor
