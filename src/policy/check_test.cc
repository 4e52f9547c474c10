#include <functional>
#include <string>

#include <gtest/gtest.h>

#include <belljar/policy.h>

namespace belljar {
namespace {

struct Case {
  std::string_view what;
  std::function<void(Policy&)> change;
  std::string_view error;  // empty: right
};

void Expect(const Case& c) {
  Policy policy;
  c.change(policy);
  const Expected<void> done = policy.Check();
  if (c.error.empty()) {
    EXPECT_TRUE(done) << c.what << ": " << done.error().Text();
    return;
  }
  ASSERT_FALSE(done) << c.what;
  EXPECT_NE(done.error().Text().find(c.error), std::string::npos) << c.what << ": " << done.error().Text();
  EXPECT_FALSE(done.error().hint.empty()) << c.what;
}

TEST(Check, AnEmptyPolicyIsRight) { EXPECT_TRUE(Policy().Check()); }

TEST(Check, Levels) {
  const Case kCases[] = {
      {"lower minimum", [](Policy& p) { p.AtLeast("process"); }, ""},
      {"process", [](Policy& p) { p.AtLevel("process"); }, ""},
      {"minimum above", [](Policy& p) { p.AtLevel("process").AtLeast("kernel"); },
       "min_level: kernel is above level process"},
      {"none", [](Policy& p) { p.AtLevel("none"); }, "level: none is for trusted in-process tools"},
      {"minimum none", [](Policy& p) { p.AtLeast("none"); }, "min_level: none is for trusted"},
      {"container", [](Policy& p) { p.AtLevel("container"); }, "level: level container is not in this version"},
      {"minimum container", [](Policy& p) { p.AtLeast("container"); },
       "min_level: level container is not in this version"},
  };
  for (const Case& c : kCases) Expect(c);
}

TEST(Check, FieldsSetDirectly) {
  const Case kCases[] = {
      {"no tmp", [](Policy& p) { p.files.tmp = 0; }, "files.tmp: 0 is out of range"},
      {"no disk", [](Policy& p) { p.limits.disk = 0; }, "limits.disk: 0 is out of range"},
      {"no inodes", [](Policy& p) { p.limits.files = 0; }, "limits.files: 0 is out of range"},
      {"no time", [](Policy& p) { p.limits.wall_ns = 0; }, "limits.wall: 0s is out of range"},
      {"endless time", [](Policy& p) { p.limits.wall_ns = kUnlimited - 1; }, "limits.wall: "},
      {"unlimited", [](Policy& p) { p.limits.wall_ns = kUnlimited; }, ""},
      {"no output", [](Policy& p) { p.limits.output = 0; }, ""},
  };
  for (const Case& c : kCases) Expect(c);
}

TEST(Check, Files) {
  const Case kCases[] = {
      {"mount", [](Policy& p) { p.ReadOnly("/srv/data", "/data"); }, ""},
      {"same target as source", [](Policy& p) { p.ReadWrite("/srv/data"); }, ""},
      {"nested", [](Policy& p) { p.ReadOnly("/a", "/x").ReadWrite("/b", "/x/y"); }, ""},
      {"relative source", [](Policy& p) { p.ReadOnly("data", "/data"); },
       "the source \"data\" is not an absolute path"},
      {"empty source", [](Policy& p) { p.ReadOnly("", "/data"); }, "is not an absolute path"},
      {"NUL source", [](Policy& p) { p.ReadOnly(std::string("/a\0b", 4), "/data"); }, "is not an absolute path"},
      {"relative target", [](Policy& p) { p.ReadOnly("/a", "data"); },
       "the target \"data\" is not a plain absolute path"},
      {"parent", [](Policy& p) { p.ReadOnly("/a", "/data/../etc"); }, "is not a plain absolute path"},
      {"parent at the end", [](Policy& p) { p.ReadOnly("/a", "/data/.."); }, "is not a plain absolute path"},
      {"dot", [](Policy& p) { p.ReadOnly("/a", "/./data"); }, "is not a plain absolute path"},
      {"doubled slash", [](Policy& p) { p.ReadOnly("/a", "//data"); }, "is not a plain absolute path"},
      {"slash at the end", [](Policy& p) { p.ReadOnly("/a", "/data/"); }, "is not a plain absolute path"},
      {"NUL target", [](Policy& p) { p.ReadOnly("/a", std::string("/a\0b", 4)); }, "is not a plain absolute path"},
      {"names with dots", [](Policy& p) { p.ReadOnly("/a", "/..data/...b/c.."); }, ""},
      {"root", [](Policy& p) { p.ReadOnly("/a", "/"); }, "would replace the whole sandbox"},
      {"proc", [](Policy& p) { p.ReadOnly("/a", "/proc"); }, "which the sandbox makes itself"},
      {"in dev", [](Policy& p) { p.ReadOnly("/a", "/dev/x"); }, "which the sandbox makes itself"},
      {"not dev", [](Policy& p) { p.ReadOnly("/a", "/develop"); }, ""},
      {"twice", [](Policy& p) { p.ReadOnly("/a", "/x").ReadWrite("/b", "/x"); }, "two mounts have the target \"/x\""},
      {"hide", [](Policy& p) { p.Hide("/usr/share/doc"); }, ""},
      {"hide relative", [](Policy& p) { p.Hide("usr"); }, "files.hide: \"usr\" is not a plain absolute path"},
      {"hide root", [](Policy& p) { p.Hide("/"); }, "files.hide: "},
      {"hide mount", [](Policy& p) { p.ReadOnly("/a", "/x").Hide("/x"); }, "\"/x\" is mounted and hidden at once"},
      {"hide in mount", [](Policy& p) { p.ReadOnly("/a", "/x").Hide("/x/y"); }, ""},
      {"hide workdir", [](Policy& p) { p.Workdir("/x/y").Hide("/x"); }, "would hide the workdir \"/x/y\""},
      {"hide default workdir", [](Policy& p) { p.Hide("/workspace"); }, "would hide the workdir \"/workspace\""},
      {"hide beside workdir", [](Policy& p) { p.Workdir("/xy").Hide("/x"); }, ""},
      {"workdir", [](Policy& p) { p.Workdir("/srv"); }, ""},
      {"workdir root", [](Policy& p) { p.Workdir("/"); }, ""},
      {"workdir relative", [](Policy& p) { p.Workdir("srv"); }, "files.workdir: \"srv\" is not a plain absolute path"},
      {"workdir parent", [](Policy& p) { p.Workdir("/srv/.."); }, "files.workdir: "},
  };
  for (const Case& c : kCases) Expect(c);
}

TEST(Check, NetworkModes) {
  const Case kCases[] = {
      {"none", [](Policy& p) { p.Set("network.mode", "none"); }, ""},
      {"allow", [](Policy& p) { p.Set("network.mode", "allow"); },
       "needs the egress broker, which this version doesn't have"},
      {"full", [](Policy& p) { p.Set("network.mode", "full"); }, "mode full needs the egress broker"},
      {"list", [](Policy& p) { p.Set("network.allow", "a.example"); },
       "network.allow: an allow list means nothing with mode none"},
      {"host alone", [](Policy& p) { p.Set("network.mode", "host"); }, "add --dangerously-share-host-network"},
      {"host by field", [](Policy& p) { p.network.mode = NetworkMode::kHost; }, "add --dangerously-share-host-network"},
      {"host granted", [](Policy& p) { p.DangerouslyShareHostNetwork(); }, ""},
      {"host and list", [](Policy& p) { p.DangerouslyShareHostNetwork().Set("network.allow", "x"); },
       "an allow list means nothing with mode host"},
  };
  for (const Case& c : kCases) Expect(c);
}

TEST(Check, TheGrantSurvivesAProfile) {
  Policy policy;
  policy.DangerouslyShareHostNetwork().Set("profile", "tool");
  EXPECT_EQ(policy.network.mode, NetworkMode::kNone);
  EXPECT_TRUE(policy.Set("network.mode", "host").Check());
}

TEST(Check, NoDocumentGrantsTheHostNetwork) {
  const Expected<Policy> policy = Policy::FromToml("[network]\nmode = 'host'", "p.toml");
  ASSERT_TRUE(policy);
  EXPECT_FALSE(policy->host_network_granted());
  const Expected<void> done = policy->Check();
  ASSERT_FALSE(done);
  EXPECT_TRUE(done.error().Text().starts_with("p.toml:2: network.mode: mode host")) << done.error().Text();
}

TEST(Check, Environment) {
  const Case kCases[] = {
      {"set", [](Policy& p) { p.Env("A", "b=c").Env("B", ""); }, ""},
      {"again", [](Policy& p) { p.Env("A", "1").Env("A", "2").PassEnv("B").PassEnv("B"); }, ""},
      {"empty name", [](Policy& p) { p.Env("", "x"); }, "environment.set: \"\" is not the name"},
      {"equals", [](Policy& p) { p.Env("A=B", "x"); }, "environment.set: \"A=B\" is not the name"},
      {"NUL name", [](Policy& p) { p.Env(std::string("A\0B", 3), "x"); }, "is not the name"},
      {"NUL value", [](Policy& p) { p.Env("A", std::string("x\0y", 3)); }, "has a NUL character"},
      {"pass empty", [](Policy& p) { p.PassEnv(""); }, "environment.pass: \"\" is not the name"},
      {"pass equals", [](Policy& p) { p.PassEnv("A=B"); }, "environment.pass: "},
      {"both", [](Policy& p) { p.Env("A", "x").PassEnv("A"); }, "\"A\" is both set and passed on"},
  };
  for (const Case& c : kCases) Expect(c);
}

TEST(Check, SaysWhereAContradictionWasWritten) {
  const Expected<Policy> policy = Policy::FromToml("level = 'process'\n\nmin_level = 'kernel'", "p.toml");
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->Check().error().step, "p.toml:3: min_level");
  Policy raised = *policy;
  EXPECT_TRUE(raised.AtLevel("kernel").Check());
}

}  // namespace
}  // namespace belljar
