#include <belljar/policy.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "policy/key.h"

namespace belljar {
namespace {

TEST(Policy, SettersReadHumanForms) {
  const Policy policy = Policy().Memory("256M").Wall("1.5s").CpuTime("0.3").Cpus("0.5").Processes("7").Tmp("unlimited");
  EXPECT_FALSE(policy.error()) << policy.error()->Text();
  EXPECT_EQ(policy.limits.memory, 256U << 20);
  EXPECT_EQ(policy.limits.wall_ns, 1'500'000'000U);
  EXPECT_EQ(policy.limits.cpu_time_ns, 300'000'000U);
  EXPECT_EQ(policy.limits.cpus_milli, 500U);
  EXPECT_EQ(policy.limits.processes, 7U);
  EXPECT_EQ(policy.files.tmp, kUnlimited);
}

TEST(Policy, KeepsTheFirstMistake) {
  Policy policy;
  policy.Memory("12 parsecs").Wall("soon").Memory("1G").Set("profile", "tool");
  ASSERT_TRUE(policy.error());
  EXPECT_EQ(policy.error()->step, "limits.memory");
  EXPECT_EQ(policy.Check().error().step, "limits.memory");
}

TEST(Policy, UnknownKeyNamesTheNearest) {
  Policy policy;
  policy.Set("limits.memroy", "1G");
  ASSERT_TRUE(policy.error());
  EXPECT_EQ(policy.error()->Text(), "policy: there is no key \"limits.memroy\"; did you mean \"limits.memory\"?");
}

TEST(Policy, UnknownProfileIsAnErrorOfCheck) {
  const Policy policy = Policy::Profile("tol").Memory("1G");
  ASSERT_FALSE(policy.Check());
  EXPECT_NE(policy.Check().error().Text().find("did you mean \"tool\"?"), std::string::npos);
}

TEST(Policy, SetAddsToLists) {
  Policy policy;
  policy.Set("files.hide", "/a").Set("files.hide", "/b").Set("environment.set", "A=b=c").Set("environment.pass", "T");
  EXPECT_EQ(policy.files.hide, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(policy.environment.set[0], (std::pair<std::string, std::string>("A", "b=c")));
  EXPECT_FALSE(policy.error());
  policy.Set("environment.set", "no equals sign");
  EXPECT_TRUE(policy.error());
}

TEST(Policy, MountsAreNotSetFromText) {
  Policy policy;
  policy.Set("files.mounts", "/a:/b");
  ASSERT_TRUE(policy.error());
  EXPECT_NE(policy.error()->hint.find("ReadOnly()"), std::string::npos);
}

TEST(Keys, DefaultsAreTheOnesOfAnEmptyPolicy) {
  for (const policy::Key& key : policy::Keys()) {
    if (key.get == nullptr) continue;
    const std::optional<std::uint64_t> value = key.get(Policy());
    EXPECT_EQ(value ? policy::FormatValue(key, *value) : "", key.initial) << key.name;
  }
}

TEST(Keys, ExamplesAreRight) {
  for (const policy::Key& key : policy::Keys()) {
    if (key.kind == policy::Kind::kMounts) continue;
    Policy policy;
    policy.Set(key.name, key.example);
    EXPECT_FALSE(policy.error()) << policy.error()->Text();
  }
}

TEST(Keys, ChoicesAreNamedLikeTheEnums) {
  for (const Level level : {Level::kNone, Level::kProcess, Level::kKernel, Level::kContainer}) {
    EXPECT_EQ(policy::FindKey("level")->choices[static_cast<std::size_t>(level)], Name(level));
  }
  for (const NetworkMode mode : {NetworkMode::kNone, NetworkMode::kAllow, NetworkMode::kFull, NetworkMode::kHost}) {
    EXPECT_EQ(policy::FindKey("network.mode")->choices[static_cast<std::size_t>(mode)], Name(mode));
  }
  for (const Background background : {Background::kEnd, Background::kKeep}) {
    EXPECT_EQ(policy::FindKey("background")->choices[static_cast<std::size_t>(background)], Name(background));
  }
  for (const SystemFiles system : {SystemFiles::kUsr, SystemFiles::kNone}) {
    EXPECT_EQ(policy::FindKey("files.system")->choices[static_cast<std::size_t>(system)], Name(system));
  }
}

class PolicyFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "belljar-policy-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& name, std::string_view text) const {
    std::ofstream(directory_ / name) << text;
    return directory_ / name;
  }
  std::filesystem::path directory_;
};

TEST_F(PolicyFile, TheNameDecidesTheLanguage) {
  EXPECT_TRUE(Policy::FromFile(Write("a.toml", "level = 'process'")));
  EXPECT_TRUE(Policy::FromFile(Write("a", "level = 'process'")));
  EXPECT_TRUE(Policy::FromFile(Write("a.json", "{\"level\": \"process\"}")));
  EXPECT_FALSE(Policy::FromFile(Write("b.json", "level = 'process'")));
}

TEST_F(PolicyFile, WhatCantBeReadIsSaid) {
  const Expected<Policy> missing = Policy::FromFile(directory_ / "missing.toml");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().Text().find("No such file"), std::string::npos);
  const Expected<Policy> folder = Policy::FromFile(directory_);
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().Text().find("Is a directory"), std::string::npos);
  const Expected<Policy> huge = Policy::FromFile(Write("huge.toml", std::string(2 << 20, '\n')));
  ASSERT_FALSE(huge);
  EXPECT_NE(huge.error().Text().find("larger than 1 MiB"), std::string::npos);
}

}  // namespace
}  // namespace belljar
