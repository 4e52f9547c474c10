#include "plan/git_places.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/git_text.h"
#include "plan/scratch_tree.h"

namespace belljar::plan {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;
using Lines = std::vector<std::string>;

TEST(GitText, AConfiguration) {
  const GitConfig config = ParseGitConfig(
      "# [core] hooksPath = no\n"
      "[CORE]\n\tHooksPath = \"a b\"  ; why\n"
      "[core \"sub\"] hookspath = with-sub\n"
      "[include]\n path = one\n path=\"t\\\"wo\"\n path = th\\\nree # x\n  path\n"
      "[includeIf \"gitdir:~/x]/\"] path = four\r\n"
      "[core] worktree = ../../lib \n[extensions]objectFormat=SHA256");
  EXPECT_EQ(config.hooks, (Lines{"a b", "with-sub"}));
  EXPECT_EQ(config.included, (Lines{"one", "t\"wo", "three", "four"}));
  EXPECT_EQ(config.worktree, "../../lib");
  EXPECT_TRUE(config.sha256);
}

TEST(GitText, WhatIsNoConfiguration) {
  for (const char* text :
       {"", "[", "[core", "[core]hooksPath", "[core]\nhooksPath=", "\\", "[core]\"", "=x", "[core]\n\\"}) {
    EXPECT_TRUE(ParseGitConfig(text).hooks.empty()) << text;
  }
}

// As git writes them: each with a submodule and files before and after it.
class AnIndex : public ::testing::TestWithParam<const char*>, protected ScratchTree {};

TEST_P(AnIndex, ItsLinks) {
  const bool sha256 = GetParam() == std::string_view("sha256");
  const std::string make = fmt::format(
      "cd {} && git init -q {} . && mkdir -p d/lib && touch a d/a-long-name-of-a-file d/lib2 z && git add . && "
      "git update-index --add --cacheinfo 160000,$(git hash-object -w --stdin </dev/null),d/lib && {}",
      root_.native(), sha256 ? "--object-format=sha256" : "",
      sha256 ? "true" : fmt::format("git update-index {}", GetParam()));
  ASSERT_EQ(std::system(make.c_str()), 0);  // NOLINT(cert-env33-c,concurrency-mt-unsafe): our own words
  const GitPlaces found = FindGitPlaces(root_, "");
  EXPECT_EQ(found.dots, Names{"d/lib/.git"}) << GetParam();
  EXPECT_TRUE(found.unsearched.empty());
}

INSTANTIATE_TEST_SUITE_P(OfEachKind, AnIndex,
                         ::testing::Values("--index-version=2", "--index-version=3", "--index-version=4",
                                           "--split-index", "sha256"));

TEST(GitText, WhatIsNoIndex) {
  EXPECT_EQ(GitLinks("", false), Lines{});
  EXPECT_EQ(GitLinks("DIRC", false), Lines{});
  EXPECT_EQ(GitLinks(std::string("DIRC\0\0\0\2\xff\xff\xff\xff", 12) + std::string(62, '\xe0'), false), Lines{});
  EXPECT_FALSE(GitLinks(std::string("DIRC\0\0\0\5\0\0\0\0", 12), false)) << "one of a later git";
}

class Places : public ::testing::Test, protected ScratchTree {
 protected:
  GitPlaces Find() const { return FindGitPlaces(root_, "/home/somebody"); }
};

TEST_F(Places, NothingWhereThereIsNone) {
  Write("main.c");
  const GitPlaces found = Find();
  EXPECT_TRUE(found.repositories.empty() && found.dots.empty() && found.hooks.empty() && found.unsearched.empty());
}

TEST_F(Places, WhereAFileLeads) {
  Write(".git", "gitdir: ./.bare/worktrees/main\n");
  Write(".bare/worktrees/main/commondir", "../..\n");
  Write(".bare/worktrees/other/gitdir", (root_ / "other/.git").string() + "\n");
  Write("other/.git", "gitdir: ../elsewhere\n");
  const GitPlaces found = Find();
  EXPECT_EQ(found.repositories, (Names{".bare", ".bare/worktrees/main", ".bare/worktrees/other", "elsewhere"}));
  EXPECT_EQ(found.dots, Names{"other/.git"});
}

TEST_F(Places, SubmodulesOfAnyDepth) {
  Write(".git/modules/a/b/c/d/e/config", "[core]\nworktree = ../../../../../../../lib\nhooksPath = hooks-of-lib\n");
  Write(".git/modules/a/b/c/d/e/modules/x/y/HEAD");
  Write(".git/worktrees/wt/modules/lib/hooks/x");
  const GitPlaces found = Find();
  EXPECT_EQ(found.repositories, (Names{".git", ".git/modules/a/b/c/d/e", ".git/modules/a/b/c/d/e/modules/x/y",
                                       ".git/worktrees/wt", ".git/worktrees/wt/modules/lib"}));
  EXPECT_EQ(found.hooks, Names{"lib/hooks-of-lib"});
}

TEST_F(Places, WhatConfigurationsName) {
  Write(".git/config", "[core]hooksPath=.husky/_\n[include]path=../shared\npath=/elsewhere\npath=~/x");
  Write("shared", fmt::format("[include]path={0}/more\n[core]hooksPath={0}/tools\n", root_.string()));
  Write("more", "[include]path=shared\n");
  Write(".gitconfig", "[core]hooksPath=of-home");
  const GitPlaces found = Find();
  EXPECT_EQ(found.configs, (Names{"shared", "more"}));
  EXPECT_EQ(found.hooks, (Names{".husky/_", "tools", "of-home"}));
  EXPECT_EQ(FindGitPlaces(root_ / ".git", root_.parent_path()).configs, Names{});
}

TEST_F(Places, ADirectoryLaidOutAsOne) {
  for (const char* part : {"HEAD", "objects/x", "refs/x"}) Write(part);
  EXPECT_EQ(Find().repositories, Names{""});
}

// A guest may make whatever it likes, for whoever looks next.
TEST_F(Places, WithoutEnd) {
  for (int i = 0; i < 17'000; ++i) Write(fmt::format("r{}/commondir", i), fmt::format("../r{}", i + 1));
  Write(".git", "gitdir: r0");
  EXPECT_FALSE(Find().unsearched.empty());
  Write(".git", "gitdir: self");
  Write("self/commondir", ".");
  EXPECT_EQ(Find().repositories, Names{"self"});
  fs::remove(root_ / "self/commondir");
  fs::create_directory(root_ / "self/commondir");
  EXPECT_EQ(Find().unsearched, Names{"self/commondir"});
}

}  // namespace
}  // namespace belljar::plan
