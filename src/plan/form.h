// plan/form.h: which set of mechanisms can meet a policy on this host, or why none can.
#pragma once

#include <belljar/error.h>
#include <belljar/policy.h>

#include "plan/compiled_plan.h"
#include "sys/host_facts.h"

namespace belljar::plan {

inline constexpr int kLandlockSignalScope = 6;  ///< ABI 6: a guest can't signal processes outside.

struct Choice {
  Level level = Level::kKernel;
  Form form = Form::kNamespaces;
  std::string weaker_because;  ///< Why it is not the strongest form of the level that was asked for.
};

/// The strongest form up to policy.level; an Error when none reaches policy.MinLevel(). Its hint is the fix.
Expected<Choice> ChooseForm(const Policy& policy, const sys::HostFacts& facts);

}  // namespace belljar::plan
