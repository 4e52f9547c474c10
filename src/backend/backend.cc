#include "backend/backend.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "backend/options.h"
#include "plan/compile.h"

namespace belljar::backend {

Expected<Receipt> Backend::Assess(const Policy& policy, const Caller& caller) {
  // Any command will do: a receipt is about the walls.
  auto planned = Plan(policy, {"/usr/bin/true"}, {.caller = caller});
  if (!planned) return std::unexpected(planned.error());
  return std::move(planned->receipt);
}

Expected<void> Backend::Prepare(const Policy& /*policy*/, std::size_t /*count*/) {
  return std::unexpected(Error{.step = "prepare sandboxes",
                               .message = "this engine keeps none ready",
                               .hint = "open it with EngineOptions{.warm = 4} and the native backend"});
}

Expected<std::unique_ptr<Backend>> MakeBackend(const EngineOptions& options) {
  if (options.backend == "native") return MakeNative(options);
  if (options.backend == "bwrap") return MakeBwrap(options);
  const bool planned = options.backend == "oci" || options.backend == "docker";
  return std::unexpected(Error{.step = "choose backend " + options.backend,
                               .message = planned ? "it is not there yet" : "there is none of that name",
                               .hint = "it can be native or bwrap; belljar doctor says what each lacks here"});
}

Expected<plan::CompiledPlan> PlanForDisplay(const Policy& policy, const std::vector<std::string>& argv,
                                            const RunOptions& options, const sys::HostFacts& facts,
                                            const std::string& bwrap) {
  if (auto good = CheckPolicy(policy); !good) return std::unexpected(good.error());
  std::optional<Policy> own;
  auto adjusted = ForRun(policy, options, own);
  if (!adjusted) return std::unexpected(adjusted.error());
  auto compiled = plan::Compile({.policy = **adjusted,
                                 .facts = facts,
                                 .caller = options.caller ? *options.caller : Caller::OfThisProcess(),
                                 .argv = argv,
                                 .streams = StreamsOf(options),
                                 .tracing = options.trace == Trace::kOff ? plan::Tracing::kOff : plan::Tracing::kOn,
                                 .channels = options.channels,
                                 .run_id = "RUN",
                                 .bwrap = bwrap});
  if (!compiled) return std::unexpected(compiled.error().error);
  return std::move(*compiled);
}

}  // namespace belljar::backend
