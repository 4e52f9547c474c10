#include "backend/try_backends.h"

#include <fmt/format.h>

#include "backend/backend.h"

namespace belljar::backend {
namespace {

using doctor::BackendFinding;
using doctor::ProbeState;

struct Known {
  const char* name;
  std::vector<std::string> lacks;  ///< Of its own, whatever the host.
};

BackendFinding Try(const Known& known) {
  BackendFinding finding{.name = known.name, .state = ProbeState::kMissing, .detail = {}, .lacks = {}, .fix = {}};
  auto engine = Engine::Open({.backend = known.name, .launching = Launching::kSelf});
  if (!engine) {
    finding.detail = engine.error().message;
    finding.fix = engine.error().hint;
    return finding;
  }
  const auto result = engine->Run(Policy(), {"/bin/true"});
  if (!result || !result->ok()) {
    finding.detail = result ? result->message : result.error().Text();
    return finding;
  }
  finding.detail = fmt::format("level {}, form {}", Name(result->receipt.level), result->receipt.form);
  for (const GuardReceipt& guard : result->receipt.guards) {
    if (guard.state == GuardState::kAbsent) finding.lacks.push_back(fmt::format("{}: {}", guard.guard, guard.reason));
  }
  finding.lacks.insert(finding.lacks.end(), known.lacks.begin(), known.lacks.end());
  finding.state = finding.lacks.empty() ? ProbeState::kOk : ProbeState::kPartial;
  return finding;
}

}  // namespace

std::vector<BackendFinding> TryBackends() {
  std::vector<BackendFinding> findings{
      Try({"native", {}}),
      Try({"bwrap",
           {"terminals: --tty is refused, and there is no /dev/ptmx",
            "writable mounts as root: it can't map their owner to the guest", "levels: kernel alone"}})};
  for (const char* planned : {"oci", "docker"}) {
    findings.push_back(
        {.name = planned, .state = ProbeState::kMissing, .detail = "not there yet", .lacks = {}, .fix = {}});
  }
  return findings;
}

}  // namespace belljar::backend
