#include "prove/control.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "prove/spawn.h"
#include "prove/stage.h"

namespace belljar::prove {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kPlainWallNs = 10'000 * kMillisecond;

// "fence survivors=2 …" on standard error.
int Survivors(std::string_view text) {
  constexpr std::string_view kKey = "fence survivors=";
  const std::size_t at = text.rfind(kKey);
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + kKey.size());
  int count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

}  // namespace

Sizes Sizes::For(const Policy& policy) {
  Sizes sizes;
  const Limits& limits = policy.limits;
  sizes.memory = std::min(sizes.memory, limits.memory);
  sizes.processes = std::min(sizes.processes, limits.processes);
  sizes.disk = std::min({sizes.disk, limits.disk, policy.files.tmp});
  sizes.files = std::min(sizes.files, limits.files);
  sizes.open_files = std::min(sizes.open_files, limits.open_files);
  sizes.output = std::min(sizes.output, limits.output.value_or(kUnlimited));
  sizes.deadline_ms = std::min(sizes.deadline_ms, limits.wall_ns / kMillisecond);
  return sizes;
}

Policy Sizes::Apply(Policy policy, const Case& c) const {
  Limits& limits = policy.limits;
  limits.memory = memory;
  limits.processes = processes;
  limits.disk = disk;
  limits.files = files;
  limits.open_files = open_files;
  limits.output = output;
  policy.files.tmp = disk;
  const bool soon = c.Has(kEndedByGuard) && !c.Has(kSeenLate);
  // CPU time is what others leave: on a busy machine the deadline would come first, and hide who held the attack.
  const bool processor = std::ranges::find(c.guards, "cpu_time limit", &Holder::guard) != c.guards.end();
  limits.wall_ns = std::min(limits.wall_ns, soon && !processor ? deadline_ms * kMillisecond : kPlainWallNs);
  if (soon) limits.cpu_time_ns = std::min(limits.cpu_time_ns, cpu_ms * kMillisecond);
  return policy;
}

std::vector<std::string> Sizes::Arguments() const {
  return {fmt::format("memory={}", memory), fmt::format("processes={}", processes),    fmt::format("disk={}", disk),
          fmt::format("files={}", files),   fmt::format("open_files={}", open_files),  fmt::format("output={}", output),
          fmt::format("cpu_ms={}", cpu_ms), fmt::format("deadline_ms={}", deadline_ms)};
}

Expected<ControlResult> RunControl(const Catalog& catalog, const Case& c, const std::string& secret, const Sizes& sizes,
                                   int cancel) {
  auto stage = Stage::Build(catalog.program, secret, Stage::Side::kOutside);
  if (!stage) return std::unexpected(stage.error());
  std::vector<std::string> argv = {catalog.program, "fence", c.id};
  argv.insert(argv.end(), stage->arguments().begin(), stage->arguments().end());
  const std::vector<std::string> limits = sizes.Arguments();
  argv.insert(argv.end(), limits.begin(), limits.end());
  const auto done = RunToEnd(argv, std::chrono::seconds(15), cancel);
  if (!done) return std::unexpected(done.error());
  if (done->timed_out) return ControlResult{false, "no end in 15 s"};
  const Outcome outcome = ReadOutcome(done->out);
  if (c.Has(kLeavesProcesses)) {
    const int survivors = Survivors(done->err);
    if (survivors > 0) return ControlResult{true, fmt::format("{} of its processes live on", survivors)};
    return ControlResult{false, "none of its processes lives on"};
  }
  if (c.Has(kFloodsOutput)) {
    return ControlResult{done->out_bytes > sizes.output, fmt::format("{} bytes came out", done->out_bytes)};
  }
  if (outcome.kind == Outcome::Kind::kSilent && !done->err.empty()) {
    return ControlResult{false, "ended without a word: " + done->err.substr(0, done->err.find('\n'))};
  }
  return ControlResult{outcome.kind == Outcome::Kind::kWorked, outcome.Text()};
}

}  // namespace belljar::prove
