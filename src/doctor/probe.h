// doctor/probe.h: one line of `belljar doctor`: something Belljar wants from a host, and whether it is to be had.
//
// Plain values; share and copy them freely. Names are stable: the engine's conclusions, the JSON form and its readers
// look probes up by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::doctor {

enum class ProbeState : std::uint8_t {
  kOk,       ///< There, and it worked.
  kPartial,  ///< There, with a gap that the detail names.
  kMissing,  ///< Not there, or refused to this user.
};
enum class ProbeGroup : std::uint8_t { kNamespaces, kFilters, kLimits, kFiles, kNetwork, kHost };

std::string_view Name(ProbeState state);
std::string_view Name(ProbeGroup group);

struct Probe {
  std::string name;
  ProbeGroup group = ProbeGroup::kHost;
  ProbeState state = ProbeState::kMissing;
  std::string purpose;  ///< What Belljar wants it for.
  std::string detail;   ///< What was found, or why not.
  std::string fix;      ///< What would change that; empty when nothing needs to, or when another probe names it.
};
using Probes = std::vector<Probe>;

/// The probe of that name, or null.
const Probe* Find(const Probes& probes, std::string_view name);
/// There and fully working.
bool Has(const Probes& probes, std::string_view name);

}  // namespace belljar::doctor
