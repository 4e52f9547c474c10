#include "doctor/probe.h"

#include <algorithm>

namespace belljar::doctor {

std::string_view Name(ProbeState state) {
  switch (state) {
    case ProbeState::kOk: return "ok";
    case ProbeState::kPartial: return "partial";
    case ProbeState::kMissing: break;
  }
  return "missing";
}

std::string_view Name(ProbeGroup group) {
  switch (group) {
    case ProbeGroup::kNamespaces: return "namespaces";
    case ProbeGroup::kFilters: return "filters";
    case ProbeGroup::kLimits: return "limits";
    case ProbeGroup::kFiles: return "files";
    case ProbeGroup::kNetwork: return "network";
    case ProbeGroup::kHost: break;
  }
  return "host";
}

const Probe* Find(const Probes& probes, std::string_view name) {
  const auto found = std::ranges::find(probes, name, &Probe::name);
  return found == probes.end() ? nullptr : &*found;
}

bool Has(const Probes& probes, std::string_view name) {
  const Probe* probe = Find(probes, name);
  return probe != nullptr && probe->state == ProbeState::kOk;
}

}  // namespace belljar::doctor
