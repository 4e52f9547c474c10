#include "plan/hidden.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "plan/pattern.h"
#include "plan/scratch_tree.h"

namespace belljar::plan {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class Hidden : public ::testing::Test, protected ScratchTree {
 protected:
  void SetUp() override {
    for (const char* name : {".env", "a/.env", "a/b/.env", "a/b/env", "keys/1.pem", "keys/2.pem", "keys/1.pub", "x*y",
                             "a[1]", "a1", "other/.env"}) {
      Write(name);
    }
    fs::create_directory_symlink(root_ / "a", root_ / "link");
  }
  Names Find(const std::string& pattern) const {
    auto found = FindHidden(pattern, {{"/usr", "/usr"}, {root_, "/data/in"}, {root_ / "other", "/data/in/a/b"}}, {});
    EXPECT_TRUE(found) << found.error().error.Text();
    return found ? *found : Names{};
  }
};

TEST_F(Hidden, PartsOfAPattern) {
  EXPECT_EQ(Find("/data/in/keys/*.pem"), (Names{"/data/in/keys/1.pem", "/data/in/keys/2.pem"}));
  EXPECT_EQ(Find("/data/in/keys/?.pub"), Names{"/data/in/keys/1.pub"});
  EXPECT_EQ(Find("/data/*/a/*"), (Names{"/data/in/a/.env", "/data/in/a/b"}));
  EXPECT_EQ(Find("/data/in/a/b/*nv"), Names{"/data/in/a/b/.env"}) << "what another mount covers is that one's";
  EXPECT_EQ(Find("/d*/in/k*/1.*"), (Names{"/data/in/keys/1.pem", "/data/in/keys/1.pub"}));
  EXPECT_EQ(Find("/data/in/none/*"), Names{});
  EXPECT_EQ(Find("/elsewhere/*"), Names{});
}

TEST_F(Hidden, AnyDepth) {
  EXPECT_EQ(Find("/data/**/.env"),
            (Names{"/data/in/.env", "/data/in/a/.env", "/data/in/a/b/.env", "/data/in/other/.env"}))
      << "without what a link leads to, which has a path of its own";
  EXPECT_EQ(Find("/**/1.pub"), Names{"/data/in/keys/1.pub"});
  EXPECT_EQ(Find("/data/in/**/keys"), Names{"/data/in/keys"});
}

// A name that looks like a pattern is still itself: else it would be in sight.
TEST_F(Hidden, ANameIsAlwaysItself) {
  EXPECT_EQ(Find("/data/in/x*y"), Names{"/data/in/x*y"});
  EXPECT_TRUE(Matches("a[1]", "a[1]"));
  EXPECT_FALSE(Matches("a[1]", "a1"));
  EXPECT_TRUE(Matches("a\\b*", "a\\bc"));
  EXPECT_EQ(Find("/data/in/a[1]*"), Names{"/data/in/a[1]"});
}

TEST_F(Hidden, BehindALinkNothingIsFoundInSilence) {
  const auto refused = [&](const std::string& pattern) { return !FindHidden(pattern, {{root_, "/data"}}, {}); };
  EXPECT_TRUE(refused("/data/link/*"));
  EXPECT_TRUE(refused("/data/link/.e?v"));
  EXPECT_TRUE(refused("/data/link/b/*"));
  EXPECT_FALSE(refused("/data/*/*")) << "what a wildcard stands for has a path of its own";
}

TEST_F(Hidden, DeeperThanAPathCanNameIsRefused) {
  const int here = ::open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::chdir(root_.c_str()), 0);
  const std::string name(200, 'd');
  for (int i = 0; i < 25; ++i) ASSERT_TRUE(::mkdir(name.c_str(), 0755) == 0 && ::chdir(name.c_str()) == 0);
  ASSERT_EQ(::fchdir(here), 0);
  ::close(here);
  EXPECT_FALSE(FindHidden("/data/**/*.pem", {{root_, "/data"}}, {}));
  std::error_code error;
  fs::remove_all(root_ / name, error);
}

TEST_F(Hidden, WhatCameLaterIsNoticed) {
  HiddenNames hidden{.patterns = {"/data/**/.env"}, .trees = {{root_, "/data"}}};
  hidden.found = *FindHidden(hidden.patterns[0], hidden.trees, {});
  EXPECT_TRUE(IsAsBefore(hidden));
  Write("keys/.env");
  EXPECT_FALSE(IsAsBefore(hidden));
}

TEST_F(Hidden, TooMuchIsRefused) {
  const auto found = FindHidden("/usr/**/*", {{"/usr", "/usr"}}, {});
  ASSERT_FALSE(found);
  EXPECT_FALSE(found.error().error.hint.empty());
}

TEST_F(Hidden, WhatTheKernelShowsIsNotLookedAt) {
  const auto found = FindHidden("/data/**/.env", {{root_, "/data"}}, {root_ / "a"});
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, (Names{"/data/.env", "/data/other/.env"}));
}

}  // namespace
}  // namespace belljar::plan
