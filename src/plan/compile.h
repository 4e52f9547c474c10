// plan/compile.h: policy + host facts → plan. Decides everything; afterwards nobody does.
#pragma once

#include <string>
#include <vector>

#include <belljar/error.h>
#include <belljar/policy.h>

#include "plan/compiled_plan.h"
#include "sys/host_facts.h"

namespace belljar::plan {

enum class Streams : std::uint8_t { kPipes, kTerminal };

struct Request {
  const Policy& policy;
  const sys::HostFacts& facts;
  const std::vector<std::string>& argv;
  Streams streams = Streams::kPipes;
  std::string run_id;  ///< Names the cgroup and the private directory: letters, digits, '-'.
};

/// Which of a run's failures an Error of Compile is.
enum class Fault : std::uint8_t {
  kCaller,   ///< The arguments are wrong: a missing mount source, an empty argv.
  kRefused,  ///< The policy can't be met on this host.
};
struct CompileError {
  Fault fault = Fault::kRefused;
  Error error;
};

std::expected<CompiledPlan, CompileError> Compile(const Request& request);

}  // namespace belljar::plan
