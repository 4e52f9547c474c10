#include "doctor/doctor.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "doctor/probe_cgroup.h"
#include "doctor/probe_files.h"
#include "doctor/probe_filters.h"
#include "doctor/probe_namespaces.h"
#include "doctor/probe_network.h"
#include "doctor/probe_userns.h"

namespace belljar::doctor {
namespace {

struct Want {
  const char* probe;
  const char* consequence;
};

// Without any of these there is no namespace form.
constexpr Want kNamespaceForm[] = {
    {"mount namespace", "no file view of its own"},
    {"pid namespace", "processes of the host are visible"},
    {"network namespace", "the host's network is reachable"},
    {"ipc namespace", "IPC of the host is reachable"},
    {"uts namespace", "no host name of its own"},
    {"cgroup namespace", "cgroup paths of the host are visible"},
    {"fresh /proc", "no /proc inside"},
    {"mount api", "the root can't be built"},
    {"seccomp filter", "every system call is open"},
};

// Privileged callers make the others without it, and lose only that the command owns none of them.
constexpr Want kUser[] = {
    {"user namespace", "no other namespace for unprivileged users, one wall less for root's commands"},
};

// What level process takes from namespaces: network off, and a tree that dies with its first process.
constexpr Want kProcessForm[] = {
    {"pid namespace", "a tree is ended by walking it"},
    {"network namespace", "the network can't be cut off"},
    {"mount namespace", "no private /tmp"},
};

// Nor without these a form by Landlock alone. Signals must be scoped: without a pid namespace a guest could otherwise
// kill every process of its user, belljar included.
constexpr Want kLandlockForm[] = {
    {"landlock", "files can't be confined"},
    {"landlock scopes", "processes of the same user could be signalled"},
    {"seccomp filter", "every system call is open"},
};

// Wanted in every form; a run goes on without them and its receipt says so.
constexpr Want kLimits[] = {
    {"cgroup memory", "limits.memory is held by rlimits and a watcher"},
    {"cgroup pids", "limits.processes is held by rlimits and a watcher"},
    {"cgroup cpuacct", "limits.cpu_time is held by rlimits and a watcher"},
    {"cgroup cpu", "limits.cpus is held by CPU affinity, in whole CPUs"},
};
constexpr Want kReports[] = {
    {"landlock", "no second wall around files"},
    {"seccomp notification", "refused system calls are not listed in denials"},
    {"seccomp kill", "a foreign system call ends a thread, not its process"},
};

template <std::size_t N>
bool HasAll(const Probes& probes, const Want (&wants)[N]) {
  return std::ranges::all_of(wants, [&](const Want& want) { return Has(probes, want.probe); });
}

template <std::size_t N>
void AddLacks(const Probes& probes, const Want (&wants)[N], std::vector<Lack>* lacks) {
  for (const Want& want : wants) {
    if (Has(probes, want.probe)) continue;
    const Probe* probe = Find(probes, want.probe);
    // What only follows from the lack of user namespaces is not listed again, nor what is there already.
    if (probe != nullptr && probe->detail == kNeedsUserNamespace) continue;
    if (std::ranges::find(*lacks, want.probe, &Lack::probe) != lacks->end()) continue;
    const bool partial = probe != nullptr && probe->state == ProbeState::kPartial;
    lacks->push_back({.probe = want.probe,
                      .state = partial ? ProbeState::kPartial : ProbeState::kMissing,
                      .consequence = partial ? probe->detail : want.consequence,
                      .fix = probe != nullptr ? probe->fix : ""});
  }
}

ProbeState StateWith(const std::vector<Lack>& lacks) { return lacks.empty() ? ProbeState::kOk : ProbeState::kPartial; }

LevelFinding ConcludeProcess(const Probes& probes) {
  LevelFinding finding{.level = Level::kProcess};
  if (HasAll(probes, kProcessForm)) {
    finding.form = "process-namespaces";
    finding.detail = "own process, limits, deadline, whole-tree kill, network off; no wall around files";
  } else {
    finding.form = "process-plain";
    finding.detail = "own process, limits, deadline, whole-tree kill; only with the host's network";
    AddLacks(probes, kUser, &finding.lacks);
    AddLacks(probes, kProcessForm, &finding.lacks);
  }
  AddLacks(probes, kLimits, &finding.lacks);
  finding.state = StateWith(finding.lacks);
  return finding;
}

LevelFinding ConcludeKernel(const HostInfo& host, const Probes& probes) {
  LevelFinding finding{.level = Level::kKernel};
  if (HasAll(probes, kNamespaceForm)) {
    finding.form = "namespaces";
    finding.detail = "namespaces, seccomp and a root of its own: only granted files exist";
  } else if (host.uid != 0 && HasAll(probes, kLandlockForm)) {
    finding.form = "landlock-only";
    finding.detail = "Landlock and seccomp without namespaces; policies that need a namespace are refused";
    AddLacks(probes, kUser, &finding.lacks);
    AddLacks(probes, kNamespaceForm, &finding.lacks);
  } else {
    finding.detail = host.uid == 0 ? "root's commands need namespaces: without them they would run as root"
                                   : "neither namespaces nor Landlock ABI 6 with seccomp are to be had";
    AddLacks(probes, kUser, &finding.lacks);
    AddLacks(probes, kNamespaceForm, &finding.lacks);
    if (host.uid != 0) AddLacks(probes, kLandlockForm, &finding.lacks);
    return finding;
  }
  AddLacks(probes, kUser, &finding.lacks);
  AddLacks(probes, kReports, &finding.lacks);
  AddLacks(probes, kLimits, &finding.lacks);
  finding.state = StateWith(finding.lacks);
  return finding;
}

LevelFinding ConcludeContainer(const LevelFinding& kernel, const std::vector<Tool>& tools) {
  LevelFinding finding{.level = Level::kContainer};
  std::string others;
  for (const Tool& tool : tools) {
    const bool runtime = tool.name == "runc" || tool.name == "crun" || tool.name == "runsc" || tool.name == "podman";
    const bool daemon = tool.name == "docker" && tool.note.starts_with("daemon listens");
    if (tool.path.empty() || (!runtime && !daemon)) continue;
    others += fmt::format("{}{} {}", others.empty() ? "" : ", ", tool.name, tool.version);
  }
  if (kernel.form == "namespaces") {
    finding.state = kernel.state;
    finding.form = "namespaces";
    finding.detail = others.empty() ? "by belljar itself" : fmt::format("by belljar itself; also here: {}", others);
  } else if (!others.empty()) {
    finding.state = ProbeState::kPartial;
    finding.detail = fmt::format("only by {}", others);
  } else {
    finding.detail = "needs namespaces, or a container runtime";
  }
  if (finding.state != ProbeState::kMissing) finding.detail += " (this host could; this version does not run it yet)";
  if (finding.state != ProbeState::kOk) finding.lacks = kernel.lacks;
  return finding;
}

}  // namespace

std::vector<LevelFinding> Conclude(const HostInfo& host, const Probes& probes, const std::vector<Tool>& tools) {
  std::vector<LevelFinding> levels{ConcludeProcess(probes), ConcludeKernel(host, probes)};
  levels.push_back(ConcludeContainer(levels.back(), tools));
  return levels;
}

bool CanReach(const std::vector<LevelFinding>& levels, Level level) {
  const auto found = std::ranges::find(levels, level, &LevelFinding::level);
  return found != levels.end() && found->state != ProbeState::kMissing;
}

Diagnosis ExamineHost() {
  NamespaceFindings namespaces = ProbeNamespaces();
  Diagnosis diagnosis{.host = ReadHostInfo(), .probes = std::move(namespaces.probes)};
  const auto add = [&](Probes more) { std::ranges::move(more, std::back_inserter(diagnosis.probes)); };
  add(ProbeLandlock());
  add(ProbeSeccomp());
  add(ProbeCgroups());
  add(ProbeProcessCalls());
  add(ProbeFiles(namespaces.way));
  add(ProbeNetwork(namespaces.way));
  add(ProbeHost());
  const Probe* cgroups = Find(diagnosis.probes, "cgroups");
  diagnosis.tools = ProbeTools(cgroups->detail.starts_with("hybrid") ? "hybrid" : cgroups->detail);
  diagnosis.levels = Conclude(diagnosis.host, diagnosis.probes, diagnosis.tools);
  return diagnosis;
}

}  // namespace belljar::doctor
