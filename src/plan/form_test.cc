#include "plan/form.h"

#include <gtest/gtest.h>

namespace belljar::plan {
namespace {

sys::HostFacts User() {
  sys::HostFacts facts;
  facts.uid = facts.gid = 1000;
  facts.landlock_abi = 7;
  facts.user_namespaces_lack = "the fix";
  return facts;
}

TEST(ChooseForm, NamespacesWhenTheyAreToBeHad) {
  EXPECT_EQ(ChooseForm({}, User())->form, Form::kNamespaces);
  sys::HostFacts root = User();
  root.uid = 0;
  root.privileged = true;
  root.user_namespaces = false;  // Privileges make namespaces without one.
  EXPECT_EQ(ChooseForm({}, root)->form, Form::kNamespaces);
}

TEST(ChooseForm, LandlockOnlyWhereUserNamespacesAreForbidden) {
  sys::HostFacts facts = User();
  facts.user_namespaces = false;
  const auto choice = ChooseForm({}, facts);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->form, Form::kLandlockOnly);
  EXPECT_EQ(choice->level, Level::kKernel);
  EXPECT_EQ(choice->weaker_because, "the fix");
}

// Whatever Landlock alone can't give is a refusal, not a weaker run.
TEST(ChooseForm, RefusesWhatLandlockAloneCannotMeet) {
  sys::HostFacts facts = User();
  facts.user_namespaces = false;
  Policy remapped;
  remapped.ReadOnly("/srv", "/data");
  EXPECT_FALSE(ChooseForm(remapped, facts));
  Policy hidden;
  hidden.Hide("/usr/bin/gcc");
  EXPECT_FALSE(ChooseForm(hidden, facts));
  Policy bare;
  bare.files.system = SystemFiles::kNone;
  EXPECT_FALSE(ChooseForm(bare, facts));
  facts.landlock_abi = 5;
  const auto refused = ChooseForm({}, facts);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().hint, "the fix");
  EXPECT_NE(refused.error().message.find("Landlock ABI 6"), std::string::npos);
}

TEST(ChooseForm, AnOldKernelIsRefused) {
  sys::HostFacts facts = User();
  facts.mount_setattr = false;
  facts.landlock_abi = 0;
  const auto refused = ChooseForm({}, facts);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().Text().find("Linux 5.15"), std::string::npos);
}

TEST(ChooseForm, TheWeakerFormNamesWhatIsMissing) {
  sys::HostFacts facts = User();
  facts.mount_setattr = false;
  const auto choice = ChooseForm({}, facts);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->form, Form::kLandlockOnly);
  EXPECT_NE(choice->weaker_because.find("mount_setattr"), std::string::npos);
}

TEST(ChooseForm, DegradesOnlyToTheMinimum) {
  sys::HostFacts facts = User();
  facts.user_namespaces = false;
  facts.landlock_abi = 0;
  Policy policy;
  EXPECT_FALSE(ChooseForm(policy, facts));
  policy.min_level = Level::kProcess;
  // The network can't be cut off without a namespace, and that is part of the policy too.
  EXPECT_FALSE(ChooseForm(policy, facts));
  policy.network.mode = NetworkMode::kHost;
  const auto choice = ChooseForm(policy, facts);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->level, Level::kProcess);
  EXPECT_EQ(choice->form, Form::kProcessPlain);
}

TEST(ChooseForm, ProcessLevelRefusesWhatItCannotEnforce) {
  Policy policy;
  policy.level = Level::kProcess;
  EXPECT_EQ(ChooseForm(policy, User())->form, Form::kProcessNamespaces);
  policy.ReadOnly("/srv");
  EXPECT_FALSE(ChooseForm(policy, User()));
}

}  // namespace
}  // namespace belljar::plan
