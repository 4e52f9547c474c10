#include "policy/bind.h"

#include <string>

#include <gtest/gtest.h>

#include "policy/print.h"

namespace belljar {
namespace {

std::string TextOf(const Policy& policy) { return policy::ToToml(policy, policy::Comments::kNone); }

constexpr std::string_view kToml = R"(
profile = "tool"
level = "process"
min_level = "process"
[limits]
wall = 1.5
cpu_time = "300ms"
cpus = 0.5
memory = "1.5G"
processes = 7
open_files = 100
file_size = 4096
disk = "unlimited"
files = "unlimited"
output = "1K"
[files]
system = "none"
mounts = [{source = "/srv/data", target = "/data"}, {source = "/srv/out", access = "rw"}]
tmp = "8M"
hide = ["/data/secret"]
workdir = "/data"
[network]
mode = "none"
allow = []
[environment]
set = {B = "2", A = "x=y"}
pass = ["TERM"]
)";

constexpr std::string_view kJson = R"({
"profile": "tool", "level": "process", "min_level": "process",
"limits": {"wall": 1.5, "cpu_time": "300ms", "cpus": 0.5, "memory": "1.5G", "processes": 7, "open_files": 100,
  "file_size": 4096, "disk": "unlimited", "files": "unlimited", "output": "1K"},
"files": {"system": "none", "mounts": [{"source": "/srv/data", "target": "/data"},
  {"source": "/srv/out", "access": "rw"}], "tmp": "8M", "hide": ["/data/secret"], "workdir": "/data"},
"network": {"mode": "none", "allow": []},
"environment": {"set": {"B": "2", "A": "x=y"}, "pass": ["TERM"]}
})";

TEST(Bind, ReadsEveryKey) {
  const Expected<Policy> policy = Policy::FromToml(kToml, "p.toml");
  ASSERT_TRUE(policy) << policy.error().Text();
  EXPECT_EQ(policy->profile, "tool");
  EXPECT_EQ(policy->level, Level::kProcess);
  EXPECT_EQ(policy->min_level, Level::kProcess);
  EXPECT_EQ(policy->limits.wall_ns, 1'500'000'000U);
  EXPECT_EQ(policy->limits.cpu_time_ns, 300'000'000U);
  EXPECT_EQ(policy->limits.cpus_milli, 500U);
  EXPECT_EQ(policy->limits.memory, 3ULL << 29);
  EXPECT_EQ(policy->limits.processes, 7U);
  EXPECT_EQ(policy->limits.open_files, 100U);
  EXPECT_EQ(policy->limits.file_size, 4096U);
  EXPECT_EQ(policy->limits.disk, kUnlimited);
  EXPECT_EQ(policy->limits.files, kUnlimited);
  EXPECT_EQ(policy->limits.output, 1024U);
  EXPECT_EQ(policy->files.system, SystemFiles::kNone);
  const std::vector<Mount> mounts = {{"/srv/data", "/data", Access::kReadOnly},
                                     {"/srv/out", "/srv/out", Access::kReadWrite}};
  EXPECT_EQ(policy->files.mounts, mounts);
  EXPECT_EQ(policy->files.tmp, 8U << 20);
  EXPECT_EQ(policy->files.hide, std::vector<std::string>{"/data/secret"});
  EXPECT_EQ(policy->files.workdir, "/data");
  EXPECT_EQ(policy->network, Network());
  const std::vector<std::pair<std::string, std::string>> variables = {{"B", "2"}, {"A", "x=y"}};
  EXPECT_EQ(policy->environment.set, variables);
  EXPECT_EQ(policy->environment.pass, std::vector<std::string>{"TERM"});
  EXPECT_TRUE(policy->Check());
}

TEST(Bind, TomlAndJsonAreTheSame) {
  const Expected<Policy> toml = Policy::FromToml(kToml, "p.toml");
  const Expected<Policy> json = Policy::FromJson(kJson, "p.json");
  ASSERT_TRUE(toml);
  ASSERT_TRUE(json) << json.error().Text();
  EXPECT_EQ(TextOf(*toml), TextOf(*json));
}

TEST(Bind, StartsFromTheProfileWhereverItStands) {
  const Expected<Policy> policy = Policy::FromJson(R"({"limits": {"memory": "1G"}, "profile": "strict-tool"})", "p");
  ASSERT_TRUE(policy) << policy.error().Text();
  EXPECT_EQ(policy->limits.memory, 1U << 30);
  EXPECT_EQ(policy->limits.processes, 32U);
  EXPECT_EQ(policy->profile, "strict-tool");
}

TEST(Bind, ABaseBeatsTheDocumentsProfile) {
  const Expected<policy::Node> document = policy::ReadToml("profile = 'tool'\n[limits]\nfiles = 99", "p.toml");
  const Expected<Policy> policy = policy::Bind(*document, "p.toml", Policy::Profile("build"));
  ASSERT_TRUE(policy) << policy.error().Text();
  EXPECT_EQ(policy->profile, "build");
  EXPECT_EQ(policy->limits.processes, 4096U);
  EXPECT_EQ(policy->limits.files, 99U);
}

struct WrongCase {
  std::string_view text;
  std::string_view error;
};

// Each error names the file, the line and the key.
TEST(Bind, OneErrorNamesFileLineAndKey) {
  static constexpr WrongCase kCases[] = {
      {"[limits]\nmemroy = 1", "p.toml:2: there is no key \"limits.memroy\"; did you mean \"limits.memory\"?"},
      {"\n\nmemory = '1M'", "p.toml:3: there is no key \"memory\"; did you mean \"limits.memory\"?"},
      {"[limts]\nmemory = 1", "p.toml:1: there is no key \"limts\"; did you mean \"limits\"?"},
      {"xyzzy = 1", "p.toml:1: there is no key \"xyzzy\"; belljar policy schema lists the keys"},
      {"limits = 4", "p.toml:1: limits: expected a table with \"limits\" keys, found a number"},
      {"[limits]\nmemory = true", "p.toml:2: limits.memory: expected a value such as \"512M\", found true or false"},
      {"[limits]\nmemory = ['1M']", "found a list"},
      {"[limits]\nmemory = 2000-01-01", "found a date or time"},
      {"[limits.memory]\nx = 1", "p.toml:1: limits.memory: expected a value such as \"512M\", found a table"},
      {"[limits]\nmemory = '12 parsecs'", "p.toml:2: limits.memory: \"12 parsecs\" is not a size"},
      {"[limits]\nmemory = -1", "\"-1\" is negative"},
      {"[limits]\nmemory = 0", "\"0\" is less than 1M"},
      {"[limits]\nmemory = '2097152T'", "is more than 1048576T"},
      {"[limits]\nmemory = ''", "\"\" is not a size"},
      {"[limits]\nmemory = 'Unlimited'", "is not a size"},
      {"[limits]\nwall = 0", "is less than 1ms"},
      {"[limits]\nwall = nan", "\"nan\" is not a duration"},
      {"[limits]\nwall = inf", "\"inf\" is not a duration"},
      {"[limits]\nwall = 1e300", "is too large"},
      {"[limits]\nwall = '9000h'", "is more than 8760h"},
      {"[limits]\ncpus = 0", "is less than 0.01"},
      {"[limits]\ncpus = '2'", "expected a number, found the string \"2\"; write 0.5 without quotes"},
      {"[limits]\nprocesses = '64'", "expected a number, found the string \"64\""},
      {"[limits]\nprocesses = 1.5", "\"1.5\" is not whole"},
      {"[limits]\nprocesses = 0", "is less than 1"},
      {"[limits]\nopen_files = 3", "is less than 4"},
      {"[limits]\ndisk = 0", "is less than 4K"},
      {"[limits]\nfiles = 0", "is less than 16"},
      {"[files]\ntmp = 0", "is less than 4K"},
      {"level = 'kernal'",
       "p.toml:1: level: \"kernal\" is not one of none, process, kernel, container; did you mean \"kernel\"?"},
      {"level = 3", "expected one of \"none\", \"process\", \"kernel\", \"container\", found a number"},
      {"profile = 'tol'", "p.toml:1: profile: there is no profile \"tol\"; did you mean \"tool\"?"},
      {"profile = 'nothing like it'", "there are default, tool, strict-tool, build, open"},
      {"profile = 1", "profile: expected the name of a profile"},
      {"[files]\nhide = '/a'", "files.hide: expected a list of strings such as [\"/data/secrets\"], found a string"},
      {"[files]\nhide = ['/a',\n 7]", "p.toml:3: files.hide: expected a list of strings"},
      {"[files]\nworkdir = 7", "files.workdir: expected a string"},
      {"[files]\nworkdir = \"/a\\u0000b\"", "has a NUL character in it"},
      {"[files]\nmounts = ['/a']", "files.mounts: expected a list such as"},
      {"[files]\nmounts = [\n{target = '/a'}]", "p.toml:3: files.mounts: a mount needs a source"},
      {"[files]\nmounts = [{source = '/a', targt = '/b'}]", "a mount has no key \"targt\"; did you mean \"target\"?"},
      {"[files]\nmounts = [{source = '/a', access = 'wr'}]", "\"wr\" is not one of ro, rw"},
      {"[environment]\nset = {A = 1}", "environment.set: expected a table of strings"},
      {"[environment]\nset = ['A=1']", "environment.set: expected a table of strings"},
      {"[environment]\npass = {A = 'x'}", "environment.pass: expected a list of strings"},
      {"[limits]\nmemory = '1M'\nmemory = '2M'", "p.toml:3: this is not TOML"},
      {"[limits]\n[limits]", "p.toml:2: this is not TOML"},
  };
  for (const WrongCase& c : kCases) {
    const Expected<Policy> policy = Policy::FromToml(c.text, "p.toml");
    ASSERT_FALSE(policy) << c.text;
    EXPECT_TRUE(policy.error().Text().starts_with("p.toml:")) << policy.error().Text();
    EXPECT_NE(policy.error().Text().find(c.error), std::string::npos) << c.text << "\ngave " << policy.error().Text();
  }
}

TEST(Bind, TheFirstMistakeInTheTextIsTheOneToldOf) {
  const Expected<Policy> policy = Policy::FromToml("[network]\nzzz = 1\n[files]\naaa = 2", "p.toml");
  ASSERT_FALSE(policy);
  EXPECT_TRUE(policy.error().step.starts_with("p.toml:2")) << policy.error().Text();
}

TEST(Bind, NullInJsonIsNoValue) {
  const Expected<Policy> policy = Policy::FromJson("{\"limits\": {\"memory\": null}}", "p.json");
  ASSERT_FALSE(policy);
  EXPECT_NE(policy.error().Text().find("found null"), std::string::npos);
}

// What can be written as a number can be written as a JSON number with an exponent as well.
TEST(Bind, ExponentsAreNumbers) {
  const Expected<Policy> policy = Policy::FromJson("{\"limits\": {\"processes\": 1e2, \"wall\": 15e-1}}", "p.json");
  ASSERT_TRUE(policy) << policy.error().Text();
  EXPECT_EQ(policy->limits.processes, 100U);
  EXPECT_EQ(policy->limits.wall_ns, 1'500'000'000U);
}

}  // namespace
}  // namespace belljar
