// plan/opened_plan.h: a compiled plan opened up for changes: steps taken out, put in and altered, then laid out again.
//
//   OpenedPlan opened(compiled);
//   opened.Drop(Op::kHostname);
//   opened.Close();
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "plan/compiled_plan.h"

namespace belljar::plan {

class OpenedPlan {
 public:
  explicit OpenedPlan(CompiledPlan& plan) : plan_(plan), head_(plan.plan()) {
    const Step* first = Steps(plan.plan());
    steps_.assign(first, first + head_.step_count);
  }

  template <typename... Ops>
  void Drop(Ops... ops) {
    std::erase_if(steps_, [&](const Step& step) { return ((step.op == ops) || ...); });
  }
  /// Of steps that the plan had when it was opened.
  const char* TextOf(const Step& step) const { return Text(plan_.plan(), step.text); }
  const char* MoreOf(const Step& step) const { return Text(plan_.plan(), step.more); }
  /// A text behind the old end of the block.
  std::uint32_t Intern(std::string_view text) {
    const auto at = static_cast<std::uint32_t>(plan_.block.size() * 8 + more_.size());
    more_.append(text).push_back('\0');
    return at;
  }
  void Close() {
    more_.resize((more_.size() + 7) / 8 * 8);
    const std::size_t old = plan_.block.size() * 8;
    head_.steps = static_cast<std::uint32_t>(old + more_.size());
    head_.step_count = static_cast<std::uint32_t>(steps_.size());
    head_.size = static_cast<std::uint32_t>(head_.steps + steps_.size() * sizeof(Step));
    plan_.block.resize((head_.size + 7) / 8);
    auto* const bytes = reinterpret_cast<char*>(plan_.block.data());
    std::memcpy(bytes, &head_, sizeof head_);
    std::memcpy(bytes + old, more_.data(), more_.size());
    std::memcpy(bytes + head_.steps, steps_.data(), steps_.size() * sizeof(Step));
  }

  LaunchPlan& head() { return head_; }
  std::vector<Step>& steps() { return steps_; }
  CompiledPlan& plan() { return plan_; }

 private:
  CompiledPlan& plan_;
  LaunchPlan head_;
  std::vector<Step> steps_;
  std::string more_;
};

}  // namespace belljar::plan
