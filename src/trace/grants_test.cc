#include "trace/grants.h"

#include <sys/stat.h>
#include <unistd.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>

#include "trace/sensitive.h"

namespace belljar::trace {
namespace {

namespace fs = std::filesystem;
using plan::Use;

class GrantsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = "/tmp/grants-test-XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    directory_ = fs::canonical(path);
    home_ = directory_ + "/home";
    for (const char* name : {"home/.ssh", "data", "work"}) fs::create_directories(directory_ + "/" + name);
    for (const char* name : {"home/.ssh/id", "home/.conf", "data/x.csv", "data/with space", "work/job.py"}) {
      std::ofstream(directory_ + "/" + name) << "x";
    }
  }
  void TearDown() override { fs::remove_all(directory_); }

  static Access Refused(Use use, std::string given, std::string resolved, int error) {
    return {
        .operation = "open", .use = use, .given = std::move(given), .resolved = std::move(resolved), .error = error};
  }
  GrantScene Scene() const { return {.policy = policy_, .directory = directory_ + "/work", .home = home_}; }
  std::string Flag(const Access& access) const {
    const auto mount = FindGrant(access, Scene());
    std::string flag = mount ? FlagOf(*mount) : "none";
    for (std::size_t at = 0; (at = flag.find(directory_)) != std::string::npos;)
      flag.replace(at, directory_.size(), "@");
    return flag;
  }
  std::string At(const char* path) const { return directory_ + path; }

  std::string directory_, home_;
  Policy policy_;
};

TEST_F(GrantsTest, AMissingFileOfTheHostIsAReadOnlyMount) {
  EXPECT_EQ(Flag(Refused(Use::kRead, At("/data/x.csv"), At("/data/x.csv"), ENOENT)), "--ro @/data/x.csv");
  EXPECT_EQ(Flag(Refused(Use::kRead, At("/data/none"), At("/data/none"), ENOENT)), "none");
  EXPECT_EQ(Flag(Refused(Use::kRead, At("/data/with space"), At("/data/with space"), ENOENT)),
            "--ro '@/data/with space'");
}

TEST_F(GrantsTest, ARelativeNameMeansTheCallersDirectory) {
  EXPECT_EQ(Flag(Refused(Use::kRead, "job.py", "/workspace/job.py", ENOENT)), "--ro @/work/job.py:/workspace/job.py");
}

TEST_F(GrantsTest, HomeMeansTheCallersHomeButNotItsSecrets) {
  EXPECT_EQ(Flag(Refused(Use::kRead, "/tmp/home/.conf", "/tmp/home/.conf", ENOENT)),
            "--ro @/home/.conf:/tmp/home/.conf");
  EXPECT_EQ(Flag(Refused(Use::kRead, "/tmp/home/.ssh/id", "/tmp/home/.ssh/id", ENOENT)), "none");
  EXPECT_EQ(Flag(Refused(Use::kRead, At("/home/.ssh/id"), At("/home/.ssh/id"), ENOENT)), "none");
}

TEST_F(GrantsTest, WritingNeedsTheDirectoryOfANewName) {
  EXPECT_EQ(Flag(Refused(Use::kCreate, At("/data/new"), At("/data/new"), ENOENT)), "--rw @/data");
  EXPECT_EQ(Flag(Refused(Use::kWrite, At("/data/x.csv"), At("/data/x.csv"), EROFS)), "--rw @/data/x.csv");
  EXPECT_EQ(Flag(Refused(Use::kRemove, At("/data/x.csv"), At("/data/x.csv"), EROFS)), "--rw @/data");
}

TEST_F(GrantsTest, AReadOnlyMountThatIsWrittenToBecomesWritable) {
  policy_.ReadOnly(At("/data"), "/in");
  EXPECT_EQ(Flag(Refused(Use::kCreate, "/in/new", "/in/new", EROFS)), "--rw @/data:/in");
  EXPECT_EQ(Flag(Refused(Use::kRead, "/in/none", "/in/none", ENOENT)), "none") << "the host does not have it either";
}

TEST_F(GrantsTest, NeverTheSystemTheKernelOrEverything) {
  EXPECT_EQ(Flag(Refused(Use::kCreate, "/usr/x", "/usr/x", EROFS)), "none");
  EXPECT_EQ(Flag(Refused(Use::kCreate, "/x", "/x", EROFS)), "none");
  EXPECT_EQ(Flag(Refused(Use::kRead, "/proc/kcore", "/proc/kcore", EACCES)), "none");
  EXPECT_EQ(Flag(Refused(Use::kRead, "/etc/shadow", "/etc/shadow", ENOENT)), "none");
  EXPECT_EQ(Flag(Refused(Use::kRead, home_, home_, ENOENT)), "none");
}

TEST_F(GrantsTest, MountsStayInPlaceWithoutNamespaces) {
  GrantScene scene = Scene();
  scene.can_move_mounts = false;
  EXPECT_FALSE(FindGrant(Refused(Use::kRead, "job.py", "/workspace/job.py", ENOENT), scene));
  EXPECT_TRUE(FindGrant(Refused(Use::kRead, At("/data/x.csv"), At("/data/x.csv"), EACCES), scene));
}

TEST_F(GrantsTest, NamesThatNoPolicyCanHold) {
  EXPECT_EQ(FlagOf({"/a\x1b[31m", "/a\x1b[31m", belljar::Access::kReadOnly}), "");
  EXPECT_EQ(FragmentOf({"/a\xff", "/a\xff", belljar::Access::kReadOnly}), "");
  EXPECT_EQ(FlagOf({"/a:/b", "/a:/b", belljar::Access::kReadOnly}), "") << "it would read as source and target";
  EXPECT_EQ(FlagOf({"/it's", "/it's", belljar::Access::kReadOnly}), "--ro '/it'\\''s'");
}

TEST_F(GrantsTest, FragmentsArePolicies) {
  const auto fragment = FragmentOf({At("/data"), "/in \"q\" \\", belljar::Access::kReadWrite});
  const auto policy = Policy::FromToml(fragment, "fragment");
  ASSERT_TRUE(policy) << policy.error().Text() << fragment;
  ASSERT_EQ(policy->files.mounts.size(), 1U);
  EXPECT_EQ(policy->files.mounts[0], (Mount{At("/data"), "/in \"q\" \\", belljar::Access::kReadWrite}));
}

TEST_F(GrantsTest, TheMostTellingComesFirstAndSearchesAreLeftOut) {
  std::vector<Access> accesses = {
      Refused(Use::kLook, "/nowhere/1", "/nowhere/1", ENOENT),
      Refused(Use::kRead, "/usr/x", "/usr/x", EROFS),
      Refused(Use::kRead, "/nowhere/2", "/nowhere/2", ENOENT),
      Refused(Use::kRead, At("/data/x.csv"), At("/data/x.csv"), ENOENT),
      Refused(Use::kRead, "/nowhere/3", "/nowhere/3", ENOENT),
  };
  accesses[4].found_elsewhere = true;
  const auto denials = ExplainAccesses(accesses, Scene());
  ASSERT_EQ(denials.size(), 4U);
  EXPECT_EQ(denials[0].target, At("/data/x.csv"));
  EXPECT_EQ(denials[1].target, "/usr/x");
  EXPECT_EQ(denials[2].target, "/nowhere/2");
  EXPECT_EQ(denials[3].target, "/nowhere/1");
  for (const Denial& denial : denials) EXPECT_FALSE(denial.rule.empty());
}

}  // namespace
}  // namespace belljar::trace
