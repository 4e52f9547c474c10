#include "plan/compile.h"

#include <gtest/gtest.h>

#include <sched.h>
#include <algorithm>

#include "plan/explain.h"

namespace belljar::plan {
namespace {

sys::HostFacts User() {
  sys::HostFacts facts;
  facts.uid = facts.gid = 1234;
  facts.landlock_abi = 7;
  facts.release = "6.1.0";
  facts.kernel = "Linux 6.1.0 x86_64";
  return facts;
}

sys::HostFacts Root() {
  sys::HostFacts facts = User();
  facts.uid = facts.gid = 0;
  facts.privileged = true;
  facts.cgroups = {.version = sys::CgroupVersion::kV1,
                   .memory = "/sys/fs/cgroup/memory",
                   .pids = "/sys/fs/cgroup/pids",
                   .cpu = "/sys/fs/cgroup/cpu",
                   .cpuacct = "/sys/fs/cgroup/cpuacct",
                   .lack = {}};
  return facts;
}

CompiledPlan Plan(const Policy& policy, const sys::HostFacts& facts) {
  const std::vector<std::string> argv = {"/bin/true"};
  auto compiled = Compile({.policy = policy, .facts = facts, .caller = {}, .argv = argv, .run_id = "test"});
  EXPECT_TRUE(compiled) << compiled.error().error.Text();
  return std::move(*compiled);
}

std::ptrdiff_t Find(const CompiledPlan& compiled, Op op) {
  const LaunchPlan& plan = compiled.plan();
  const auto* const found =
      std::find_if(Steps(plan), Steps(plan) + plan.step_count, [&](const Step& s) { return s.op == op; });
  return found == Steps(plan) + plan.step_count ? -1 : found - Steps(plan);
}

// The orders that security rests on. A plan that breaks one of them must not be made.
TEST(Compile, KeepsTheOrderThatSecurityRestsOn) {
  for (const sys::HostFacts& facts : {User(), Root()}) {
    const CompiledPlan compiled = Plan({}, facts);
    const std::vector<Op> order = {Op::kCloseForeign,  Op::kDieWithParent,    Op::kNoDump,          Op::kPrivateMounts,
                                   Op::kNewRoot,       Op::kSealRoot,         Op::kPivot,           Op::kRlimit,
                                   Op::kLandlockRules, Op::kDropCapabilities, Op::kNoNewPrivileges, Op::kCloseFds,
                                   Op::kNewSession,    Op::kLandlockEnforce,  Op::kSeccomp,         Op::kExec};
    for (std::size_t i = 0; i < order.size(); ++i) {
      ASSERT_GE(Find(compiled, order[i]), 0) << "step " << i;
      if (i == 0) continue;
      EXPECT_LT(Find(compiled, order[i - 1]), Find(compiled, order[i])) << "step " << i;
    }
    EXPECT_EQ(Find(compiled, Op::kSeccomp) + 2, Find(compiled, Op::kExec)) << "the filter is the last before exec";
    EXPECT_EQ(Find(compiled, Op::kSeccomp) + 1, Find(compiled, Op::kCommandRlimit)) << "but for a lower limit";
  }
}

TEST(Compile, RootBecomesSomebodyElse) {
  const CompiledPlan compiled = Plan({}, Root());
  EXPECT_GE(compiled.guest_uid, 1'900'000'000U);
  EXPECT_LT(Find(compiled, Op::kPivot), Find(compiled, Op::kSetIds));
  EXPECT_LT(Find(compiled, Op::kSetIds), Find(compiled, Op::kUserNamespace));
  EXPECT_LT(Find(compiled, Op::kUserNamespace), Find(compiled, Op::kDropCapabilities));
  EXPECT_EQ(compiled.plan().clone_flags & CLONE_NEWUSER, 0U) << "the other namespaces belong to the host's";
}

TEST(Compile, UserMapsItsOwnIds) {
  const CompiledPlan compiled = Plan({}, User());
  EXPECT_NE(compiled.plan().clone_flags & CLONE_NEWUSER, 0U);
  EXPECT_LT(Find(compiled, Op::kMapIds), Find(compiled, Op::kNoDump));
  EXPECT_EQ(Find(compiled, Op::kSetIds), -1);
}

TEST(Compile, LimitsWithoutCgroupsAreWatchedAndSaidSo) {
  const CompiledPlan compiled = Plan({}, User());
  EXPECT_TRUE(compiled.watched.memory);
  EXPECT_TRUE(compiled.watched.processes);
  EXPECT_TRUE(compiled.cgroup_paths.empty());
  const auto& guards = compiled.receipt.guards;
  const auto memory = std::ranges::find(guards, "memory limit", &GuardReceipt::guard);
  ASSERT_NE(memory, guards.end());
  EXPECT_EQ(memory->state, GuardState::kPartial);
  EXPECT_FALSE(memory->reason.empty());
}

TEST(Compile, CgroupsAreJoinedBeforeAnythingElseThatCosts) {
  const CompiledPlan compiled = Plan({}, Root());
  EXPECT_EQ(compiled.cgroup_paths.size(), 2U);
  EXPECT_LT(Find(compiled, Op::kJoinCgroup), Find(compiled, Op::kPrivateMounts));
  EXPECT_FALSE(compiled.watched.memory);
}

TEST(Compile, RejectsBadCommands) {
  const Policy policy;
  const sys::HostFacts facts = User();
  for (const std::vector<std::string>& argv :
       {std::vector<std::string>{}, {""}, {std::string("a\0b", 3)}, {"x", std::string(2 << 20, 'y')}}) {
    const auto compiled = Compile({.policy = policy, .facts = facts, .caller = {}, .argv = argv, .run_id = "test"});
    ASSERT_FALSE(compiled);
    EXPECT_EQ(compiled.error().fault, Fault::kCaller);
  }
}

TEST(Compile, MissingSourceIsTheCallersMistake) {
  Policy policy;
  policy.ReadOnly("/no/such/place", "/data");
  const std::vector<std::string> argv = {"/bin/true"};
  const sys::HostFacts facts = User();
  const auto compiled = Compile({.policy = policy, .facts = facts, .caller = {}, .argv = argv, .run_id = "test"});
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.error().fault, Fault::kCaller);
}

TEST(Compile, HostNetworkHasNoNamespace) {
  Policy policy;
  policy.network.mode = NetworkMode::kHost;
  const CompiledPlan compiled = Plan(policy, User());
  EXPECT_EQ(compiled.plan().clone_flags & CLONE_NEWNET, 0U);
  EXPECT_EQ(Find(compiled, Op::kLoopback), -1);
}

// Each step can be told in words: `explain` and error messages have no blanks.
TEST(Explain, EveryStepHasWords) {
  for (const sys::HostFacts& facts : {User(), Root()}) {
    for (const Level level : {Level::kProcess, Level::kKernel}) {
      Policy policy;
      policy.level = level;
      const CompiledPlan compiled = Plan(policy, facts);
      for (const StepText& text : Explain(compiled)) {
        EXPECT_FALSE(text.what.empty());
        EXPECT_FALSE(text.why.empty()) << text.what;
      }
    }
  }
}

}  // namespace
}  // namespace belljar::plan
