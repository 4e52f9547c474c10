#include "policy/print.h"

#include <gtest/gtest.h>

#include "policy/json_schema.h"
#include "policy/key.h"
#include "policy/profile.h"

namespace belljar::policy {
namespace {

Policy Unusual() {
  Policy policy = Policy::Profile("strict-tool");
  policy.AtLeast("process").Wall("0.0123s").Cpus("1.25").Memory("1048577").Tmp("unlimited").OutputLimit("0");
  policy.ReadOnly("/srv/\"quoted\" dir", "/data").ReadWrite("/srv/out\n\x7f\xC3\xBC", "/out").Hide("/data/a'b");
  policy.Env("WITH SPACE", "=\t\"").Env("EMPTY", "").PassEnv("TERM").Workdir("/data");
  return policy;
}

std::string JsonOf(const Policy& policy) {
  std::string out;
  base::JsonWriter json(out);
  WriteJson(json, policy);
  return out;
}

void ExpectSame(const Policy& a, const Policy& b) {
  EXPECT_EQ(a.level, b.level);
  EXPECT_EQ(a.MinLevel(), b.MinLevel());
  EXPECT_EQ(a.profile, b.profile);
  EXPECT_EQ(a.limits, b.limits);
  EXPECT_EQ(a.files, b.files);
  EXPECT_EQ(a.network, b.network);
  EXPECT_EQ(a.environment, b.environment);
}

TEST(Print, TomlReadsBack) {
  for (const Comments comments : {Comments::kNone, Comments::kDocs}) {
    const Expected<Policy> again = Policy::FromToml(ToToml(Unusual(), comments), "p.toml");
    ASSERT_TRUE(again) << again.error().Text() << "\n" << ToToml(Unusual(), comments);
    ExpectSame(*again, Unusual());
  }
}

TEST(Print, JsonReadsBack) {
  const Expected<Policy> again = Policy::FromJson(JsonOf(Unusual()), "p.json");
  ASSERT_TRUE(again) << again.error().Text() << "\n" << JsonOf(Unusual());
  ExpectSame(*again, Unusual());
}

TEST(Print, EveryProfileReadsBack) {
  for (const NamedProfile& profile : Profiles()) {
    const Policy policy = Policy::Profile(profile.name);
    ExpectSame(*Policy::FromToml(ToToml(policy), "p.toml"), policy);
    ExpectSame(*Policy::FromJson(JsonOf(policy), "p.json"), policy);
  }
}

TEST(JsonSchema, HasEveryKey) {
  std::string schema;
  base::JsonWriter json(schema);
  WriteJsonSchema(json);
  for (const Key& key : Keys()) {
    EXPECT_NE(schema.find("\"" + std::string(key.leaf()) + "\":{\"description\":"), std::string::npos) << key.name;
  }
}

}  // namespace
}  // namespace belljar::policy
