#include "policy/profile.h"

#include <gtest/gtest.h>

#include "policy/bind.h"
#include "policy/key.h"

namespace belljar::policy {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(Profiles, AreAllRight) {
  ASSERT_EQ(Profiles().size(), 5U);
  for (const NamedProfile& profile : Profiles()) {
    const Policy policy = Policy::Profile(profile.name);
    EXPECT_TRUE(policy.Check()) << policy.Check().error().Text();
    EXPECT_EQ(policy.profile, profile.name);
    EXPECT_EQ(policy.level, Level::kKernel) << "no profile is weaker than kernel by itself";
    EXPECT_EQ(policy.MinLevel(), Level::kKernel);
    EXPECT_EQ(policy.network, Network());
    EXPECT_TRUE(policy.files.mounts.empty());
    EXPECT_TRUE(policy.environment.pass.empty());
    EXPECT_FALSE(profile.summary().empty());
  }
}

// LoadProfile("default") does not read the file, for speed; so the file must say what the code does.
TEST(Profiles, DefaultFileEqualsTheCode) {
  const Expected<Node> document = ReadToml(FindProfile("default")->text, "default.toml");
  ASSERT_TRUE(document);
  // From a base where everything is different, so that a value missing in the file shows.
  Policy other = Policy::Profile("strict-tool");
  other.limits.cpus_milli = 1;
  other.limits.output = std::nullopt;
  other.files.system = SystemFiles::kNone;
  other.level = Level::kNone;
  other.profile = "default";
  other.Hide("/x").PassEnv("X").Env("X", "y").ReadOnly("/x");
  other.network = {NetworkMode::kFull, {"x"}};
  const Expected<Policy> read = Bind(*document, "default.toml", other);
  ASSERT_TRUE(read) << read.error().Text();
  const Policy code;
  EXPECT_EQ(read->level, code.level);
  EXPECT_EQ(read->min_level, code.min_level);
  EXPECT_EQ(read->profile, code.profile);
  EXPECT_EQ(read->limits, code.limits);
  EXPECT_EQ(read->files, code.files);
  EXPECT_EQ(read->network, code.network);
  EXPECT_EQ(read->environment, code.environment);
}

// Every file states every value, so that nobody has to look up what a profile inherits.
TEST(Profiles, EveryFileStatesEveryLimit) {
  for (const NamedProfile& profile : Profiles()) {
    for (const Key& key : Keys()) {
      if (key.section().empty() && key.name != "level") continue;
      if (key.name == "files.workdir") continue;
      const std::string leaf(key.leaf());
      EXPECT_TRUE(profile.text.find("\n" + leaf + " = ") != std::string_view::npos ||
                  profile.text.find("\n# " + leaf + " is not set") != std::string_view::npos)
          << profile.name << " does not mention " << key.name;
    }
  }
}

TEST(Profiles, ToolHasThePromisedLimits) {
  const Policy tool = Policy::Profile("tool");
  EXPECT_EQ(tool.limits.cpu_time_ns, 5 * kSecond);
  EXPECT_EQ(tool.limits.memory, 512U << 20);
  EXPECT_EQ(tool.limits.file_size, 16U << 20);
  EXPECT_EQ(tool.limits.processes, 64U);
  EXPECT_EQ(tool.limits.output, 64U << 10);
  EXPECT_EQ(tool.limits.wall_ns, 30 * kSecond);
}

TEST(Profiles, StrictToolHasThePromisedLimits) {
  const Policy strict = Policy::Profile("strict-tool");
  EXPECT_EQ(strict.limits.cpu_time_ns, 5 * kSecond);
  EXPECT_EQ(strict.limits.memory, 256U << 20);
  EXPECT_EQ(strict.limits.file_size, 10U << 20);
  EXPECT_EQ(strict.limits.processes, 32U);
}

TEST(Profiles, StrictToolIsNowhereLooserThanTool) {
  const Policy tool = Policy::Profile("tool");
  const Policy strict = Policy::Profile("strict-tool");
  for (const Key& key : Keys()) {
    if (key.kind != Kind::kNumber) continue;
    EXPECT_LE(key.get(strict), key.get(tool)) << key.name;
  }
}

}  // namespace
}  // namespace belljar::policy
