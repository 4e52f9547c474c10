// doctor/doctor.h: everything the probes found on this host, and what it means for the levels.
//
//   doctor::Diagnosis diagnosis = doctor::ExamineHost();
//   if (!doctor::CanReach(diagnosis.levels, Level::kKernel)) …
//
// Takes some tens of milliseconds, three seconds at most per group when the host misbehaves. Leaves nothing behind.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <belljar/level.h>

#include "doctor/probe.h"
#include "doctor/probe_host.h"
#include "doctor/probe_tools.h"

namespace belljar::doctor {

/// Something a level would want and does not get here.
struct Lack {
  std::string probe;                        ///< The probe that found it.
  ProbeState state = ProbeState::kMissing;  ///< Never kOk.
  std::string consequence;                  ///< What that means for a run.
  std::string fix;
};

struct LevelFinding {
  Level level = Level::kNone;
  ProbeState state = ProbeState::kMissing;  ///< kPartial: reached, with gaps that `lacks` names.
  std::string form;                         ///< As in a receipt, e.g. "namespaces" or "landlock-only"; or empty.
  std::string detail;
  std::vector<Lack> lacks;
};

/// One of those who can make sandboxes.
struct BackendFinding {
  std::string name;                         ///< As in `--backend`.
  ProbeState state = ProbeState::kMissing;  ///< kPartial: it works, with the gaps that `lacks` names.
  std::string detail;
  std::vector<std::string> lacks;
  std::string fix;
};

struct Diagnosis {
  HostInfo host;
  std::vector<LevelFinding> levels;
  Probes probes;
  std::vector<Tool> tools;
  std::vector<BackendFinding> backends;  ///< Empty until somebody has tried them.
};

/// Runs every probe as the current user.
Diagnosis ExamineHost();

/// Which levels those findings allow: process, kernel, container, in this order. Pure.
std::vector<LevelFinding> Conclude(const HostInfo& host, const Probes& probes, const std::vector<Tool>& tools);

bool CanReach(const std::vector<LevelFinding>& levels, Level level);

/// The stable document of `belljar doctor --json` (docs/doctor.md).
std::string ToJson(const Diagnosis& diagnosis);

}  // namespace belljar::doctor
