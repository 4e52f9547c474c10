// plan/explain.h: a plan in words, step by step, with what each step protects against.
#pragma once

#include <string>
#include <vector>

#include "plan/compiled_plan.h"

namespace belljar::plan {

struct StepText {
  std::string who;   ///< "parent", "init" or "command"
  std::string what;  ///< "mount /usr at /usr, read-only"
  std::string why;   ///< What it protects against.
};

/// One text for each step of the plan, in its order.
StepText Describe(const LaunchPlan& plan, const Step& step);
/// What step number `index` does; empty when there is none of that number.
std::string DescribeStep(const LaunchPlan& plan, std::int32_t index);
/// Of a step that is about one path. Empty for an index that the plan doesn't have.
std::string PathOfStep(const LaunchPlan& plan, std::int32_t index);

/// Everything in order: the parent's preparations, the clone, each step.
std::vector<StepText> Explain(const CompiledPlan& compiled);

}  // namespace belljar::plan
