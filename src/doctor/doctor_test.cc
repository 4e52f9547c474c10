#include "doctor/doctor.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "doctor/probe_userns.h"

namespace belljar::doctor {
namespace {

constexpr const char* kAll[] = {"user namespace", "mount namespace", "pid namespace",    "network namespace",
                                "ipc namespace",  "uts namespace",   "cgroup namespace", "fresh /proc",
                                "mount api",      "seccomp filter",  "seccomp kill",     "seccomp notification",
                                "landlock",       "landlock scopes", "cgroup memory",    "cgroup pids",
                                "cgroup cpu",     "cgroup cpuacct"};

Probes Perfect() {
  Probes probes;
  for (const char* name : kAll) probes.push_back({.name = name, .state = ProbeState::kOk});
  return probes;
}

Probes Without(std::initializer_list<std::string_view> names) {
  Probes probes = Perfect();
  for (Probe& probe : probes) {
    if (std::ranges::find(names, probe.name) == names.end()) continue;
    probe.state = ProbeState::kMissing;
    probe.fix = "mend " + probe.name;
  }
  return probes;
}

// As ProbeNamespaces leaves it for an unprivileged user where user namespaces are forbidden.
Probes WithoutUserNamespaces(std::initializer_list<std::string_view> also = {}) {
  Probes probes = Without(also);
  for (Probe& probe : probes) {
    if (probe.name.ends_with("namespace") || probe.name == "fresh /proc" || probe.name == "mount api") {
      probe.state = ProbeState::kMissing;
      probe.detail = probe.name == "user namespace" ? "forbidden" : kNeedsUserNamespace;
      probe.fix = probe.name == "user namespace" ? "allow it" : "";
    }
  }
  return probes;
}

const HostInfo kUser{.uid = 1000};
const HostInfo kRoot{.uid = 0};

const LevelFinding& At(const std::vector<LevelFinding>& levels, Level level) {
  return *std::ranges::find(levels, level, &LevelFinding::level);
}

TEST(Conclude, PerfectHost) {
  const auto levels = Conclude(kUser, Perfect(), {});
  ASSERT_EQ(levels.size(), 3U);
  for (const LevelFinding& level : levels) {
    EXPECT_EQ(level.state, ProbeState::kOk) << Name(level.level);
    EXPECT_TRUE(level.lacks.empty());
  }
  EXPECT_EQ(At(levels, Level::kKernel).form, "namespaces");
}

TEST(Conclude, LandlockAloneForUsers) {
  const auto levels = Conclude(kUser, WithoutUserNamespaces(), {});
  const LevelFinding& kernel = At(levels, Level::kKernel);
  EXPECT_EQ(kernel.form, "landlock-only");
  EXPECT_EQ(kernel.state, ProbeState::kPartial);
  EXPECT_TRUE(CanReach(levels, Level::kKernel));
  EXPECT_FALSE(CanReach(levels, Level::kContainer));
  // One lack, with its fix, and not eight that follow from it.
  ASSERT_EQ(kernel.lacks.size(), 1U);
  EXPECT_EQ(kernel.lacks[0].probe, "user namespace");
  EXPECT_EQ(kernel.lacks[0].fix, "allow it");
  EXPECT_EQ(At(levels, Level::kProcess).form, "process-plain");
}

TEST(Conclude, LandlockAloneNeedsScopesAndSeccomp) {
  for (const std::string_view needed : {"landlock scopes", "landlock", "seccomp filter"}) {
    const auto levels = Conclude(kUser, WithoutUserNamespaces({needed}), {});
    EXPECT_FALSE(CanReach(levels, Level::kKernel)) << needed;
    EXPECT_TRUE(CanReach(levels, Level::kProcess));
    const auto& lacks = At(levels, Level::kKernel).lacks;
    EXPECT_NE(std::ranges::find(lacks, needed, &Lack::probe), lacks.end()) << needed;
  }
}

TEST(Conclude, LandlockAloneIsNotForRoot) {
  EXPECT_FALSE(CanReach(Conclude(kRoot, WithoutUserNamespaces(), {}), Level::kKernel));
}

TEST(Conclude, RootNeedsNoUserNamespace) {
  const auto levels = Conclude(kRoot, Without({"user namespace"}), {});
  EXPECT_EQ(At(levels, Level::kKernel).form, "namespaces");
  EXPECT_EQ(At(levels, Level::kKernel).state, ProbeState::kPartial);
}

TEST(Conclude, EveryNeedOfTheNamespaceFormCounts) {
  for (const std::string_view needed : {"mount namespace", "pid namespace", "network namespace", "ipc namespace",
                                        "uts namespace", "cgroup namespace", "fresh /proc", "mount api"}) {
    EXPECT_EQ(At(Conclude(kUser, Without({needed}), {}), Level::kKernel).form, "landlock-only") << needed;
  }
}

TEST(Conclude, MissingLimitsLeaveGaps) {
  const auto levels = Conclude(kUser, Without({"cgroup memory", "seccomp notification"}), {});
  const LevelFinding& kernel = At(levels, Level::kKernel);
  EXPECT_EQ(kernel.state, ProbeState::kPartial);
  ASSERT_EQ(kernel.lacks.size(), 2U);
  EXPECT_EQ(kernel.lacks[1].fix, "mend cgroup memory");
}

TEST(Conclude, ContainerByARuntime) {
  const Tool runc{.name = "runc", .path = "/usr/bin/runc", .version = "1.3.3", .state = ProbeState::kOk};
  const auto levels = Conclude(kUser, WithoutUserNamespaces(), {runc});
  EXPECT_EQ(At(levels, Level::kContainer).state, ProbeState::kPartial);
  EXPECT_NE(At(levels, Level::kContainer).detail.find("runc 1.3.3"), std::string::npos);
}

TEST(ToJson, HasTheDocumentedKeys) {
  Diagnosis diagnosis{.host = kUser, .probes = Without({"landlock"})};
  diagnosis.levels = Conclude(diagnosis.host, diagnosis.probes, {});
  const std::string json = ToJson(diagnosis);
  for (const char* key :
       {"\"host\"", "\"levels\"", "\"probes\"", "\"tools\"", "\"reachable\"", "\"lacks\"", "\"fix\""}) {
    EXPECT_NE(json.find(key), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace belljar::doctor
