#include "learn/candidates.h"

#include <gtest/gtest.h>

#include <set>

#include "trace/grants.h"

namespace belljar::learn {
namespace {

using plan::Use;
using trace::Access;
using trace::FlagOf;

class CandidatesTest : public testing::Test {
 protected:
  static Access Used(Use use, const std::string& path) {
    return {.operation = "open", .use = use, .given = path, .resolved = path};
  }
  Candidates Find(const std::vector<Access>& accesses) {
    return FindCandidates(accesses, {.home = "/home/me",
                                     .private_directory = "/tmp/private",
                                     .shown = [](const std::string& path) { return path.starts_with("/usr"); },
                                     .kind =
                                         [this](const std::string& path) {
                                           return directories_.contains(path) ? sys::FileKind::kDirectory
                                                                              : sys::FileKind::kFile;
                                         },
                                     .made_by_run = [this](const std::string& path) { return made_.contains(path); }});
  }
  static std::vector<std::string> Flags(const std::vector<Grant>& grants) {
    std::vector<std::string> flags;
    flags.reserve(grants.size());
    for (const Grant& grant : grants) flags.push_back(FlagOf(grant.mount));
    return flags;
  }
  using Strings = std::vector<std::string>;
  std::set<std::string> directories_, made_;
};

TEST_F(CandidatesTest, ReadsAreFilesAndManyAreTheirDirectory) {
  EXPECT_EQ(Flags(Find({Used(Use::kRead, "/d/1"), Used(Use::kRead, "/usr/x"), Used(Use::kRead, "/proc/1")}).files),
            Strings{"--ro /d/1"});
  const auto many = Find({Used(Use::kRead, "/d/1"), Used(Use::kRead, "/d/2"), Used(Use::kRead, "/d/3"),
                          Used(Use::kRead, "/d/4"), Used(Use::kRead, "/e/1")});
  EXPECT_EQ(Flags(many.files), (Strings{"--ro /d", "--ro /e/1"}));
}

TEST_F(CandidatesTest, NeverAHomeAsAWhole) {
  const auto found =
      Find({Used(Use::kRead, "/home/me/1"), Used(Use::kRead, "/home/me/2"), Used(Use::kRead, "/home/me/3"),
            Used(Use::kRead, "/home/me/4"), Used(Use::kRead, "/home/me/.ssh/id"), Used(Use::kCreate, "/home/me/new")});
  EXPECT_EQ(found.files.size(), 4U);
  ASSERT_EQ(found.withheld.size(), 2U);
  EXPECT_NE(found.withheld[0].find("secrets"), std::string::npos);
}

TEST_F(CandidatesTest, WritesAreTheDirectoryThatWasThere) {
  made_ = {"/p/out/new", "/p/out/new/file"};
  const auto found = Find({Used(Use::kCreate, "/p/out/new"), Used(Use::kCreate, "/p/out/new/file"),
                           Used(Use::kRead, "/p/out/old"), Used(Use::kCreate, "/tmp/scratch")});
  EXPECT_EQ(Flags(found.files), Strings{"--rw /p/out"});
  EXPECT_TRUE(found.files[0].durable);
}

TEST_F(CandidatesTest, ListedDirectoriesAreSecondChoice) {
  directories_ = {"/p"};
  const auto found = Find({Used(Use::kRead, "/p"), Used(Use::kRead, "/p/a")});
  EXPECT_EQ(Flags(found.files), Strings{"--ro /p/a"});
  EXPECT_EQ(Flags(found.directories), Strings{"--ro /p"});
}

TEST_F(CandidatesTest, ARepositoryIsOneThing) {
  const auto found = Find({Used(Use::kRead, "/p/.git/objects/aa/bb"), Used(Use::kRead, "/p/.git/HEAD")});
  EXPECT_EQ(Flags(found.files), Strings{"--ro /p/.git"});
}

}  // namespace
}  // namespace belljar::learn
