#include "doctor/probe_userns.h"

#include <csignal>

#include <gtest/gtest.h>

namespace belljar::doctor {
namespace {

constexpr std::uint32_t kUser = 1000;

Trial Refused(const char* step, int error) { return {.end = Trial::End::kFailed, .step = step, .error = error}; }

UserNamespaceFacts Facts() {
  UserNamespaceFacts facts;
  facts.euid = kUser;
  facts.program = "/opt/belljar";
  facts.max_user_namespaces = 15000;
  return facts;
}

TEST(ExplainUserNamespace, UbuntuDeniesCapabilities) {
  UserNamespaceFacts facts = Facts();
  facts.apparmor_restrict = 1;
  // Ubuntu 24.04 lets clone pass and refuses the map, or the mount when a profile allows the map.
  for (const char* step : {"write /proc/self/uid_map", "mount a tmpfs"}) {
    const Error error = ExplainUserNamespace(Refused(step, EACCES), facts);
    EXPECT_NE(error.message.find("AppArmor"), std::string::npos) << error.message;
    EXPECT_NE(error.hint.find("profile belljar /opt/belljar flags=(unconfined)"), std::string::npos) << error.hint;
    EXPECT_NE(error.hint.find("apparmor_parser -r"), std::string::npos);
    EXPECT_EQ(error.code, EACCES);
  }
}

TEST(ExplainUserNamespace, SysctlAtZero) {
  UserNamespaceFacts facts = Facts();
  facts.max_user_namespaces = 0;
  const Error error = ExplainUserNamespace(Refused(kStepClone, ENOSPC), facts);
  EXPECT_NE(error.message.find("user.max_user_namespaces is 0"), std::string::npos);
  EXPECT_NE(error.hint.find("sysctl -w user.max_user_namespaces="), std::string::npos);
}

TEST(ExplainUserNamespace, SysctlUsedUp) {
  const Error error = ExplainUserNamespace(Refused(kStepClone, ENOSPC), Facts());
  EXPECT_NE(error.message.find("15000"), std::string::npos) << error.message;
}

TEST(ExplainUserNamespace, DebianSwitchHoldsForUsersOnly) {
  UserNamespaceFacts facts = Facts();
  facts.unprivileged_clone = 0;
  EXPECT_EQ(ExplainUserNamespace(Refused(kStepClone, EPERM), facts).hint,
            "as root: sysctl -w kernel.unprivileged_userns_clone=1");
  facts.euid = 0;
  EXPECT_EQ(ExplainUserNamespace(Refused(kStepClone, EPERM), facts).hint.find("unprivileged_userns_clone"),
            std::string::npos);
}

TEST(ExplainUserNamespace, SeccompByErrnoAndByDeath) {
  UserNamespaceFacts facts = Facts();
  facts.seccomp_filtered = true;
  EXPECT_NE(ExplainUserNamespace(Refused(kStepClone, EPERM), facts).message.find("seccomp"), std::string::npos);
  const Trial killed{.end = Trial::End::kKilled, .signal = SIGSYS};
  EXPECT_NE(ExplainUserNamespace(killed, Facts()).message.find("seccomp"), std::string::npos);
}

TEST(ExplainUserNamespace, ContainerProfileForbidsMount) {
  UserNamespaceFacts facts = Facts();
  facts.apparmor_label = "docker-default (enforce)";
  const Error error = ExplainUserNamespace(Refused("mount a tmpfs", EACCES), facts);
  EXPECT_NE(error.message.find("docker-default"), std::string::npos);
  EXPECT_NE(error.hint.find("apparmor=unconfined"), std::string::npos);
}

TEST(ExplainUserNamespace, KernelWithout) {
  UserNamespaceFacts facts = Facts();
  facts.kernel_support = false;
  EXPECT_NE(ExplainUserNamespace(Refused(kStepClone, EINVAL), facts).hint.find("CONFIG_USER_NS"), std::string::npos);
}

TEST(ExplainUserNamespace, EveryAnswerHasAReasonAndAFix) {
  for (const int error : {EPERM, EACCES, ENOSPC, EUSERS, EINVAL, ENOSYS, ENOMEM, ENOENT}) {
    for (const char* step : {kStepClone, "write /proc/self/uid_map", "mount a tmpfs"}) {
      const Error explained = ExplainUserNamespace(Refused(step, error), Facts());
      EXPECT_FALSE(explained.message.empty()) << step << error;
      EXPECT_FALSE(explained.hint.empty()) << step << error;
    }
  }
}

}  // namespace
}  // namespace belljar::doctor
