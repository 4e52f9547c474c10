#include "plan/protect.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "plan/scratch_tree.h"
#include "policy/protect.h"

namespace belljar::plan {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class Protecting : public ::testing::Test, protected ScratchTree {
 protected:
  ProtectedFiles Find(const Policy& policy) const {
    return FindProtected(policy, policy.files.mounts.front(), "/home/somebody");
  }
  Policy Mounted() const { return Policy().ReadWrite(root_, "/workspace"); }
  static Names NamesOf(const std::vector<ProtectedFile>& files) {
    Names names;
    for (const ProtectedFile& file : files) names.push_back(file.name);
    return names;
  }
  static bool Has(const std::vector<ProtectedFile>& files, const std::string& name) {
    return std::ranges::find(files, name, &ProtectedFile::name) != files.end();
  }
};

TEST_F(Protecting, ARepositorysHooksAndSettings) {
  Write(".git/config");
  Write(".git/hooks/pre-commit");
  Write(".git/modules/a/config");
  Write(".bashrc");
  const ProtectedFiles found = Find(Mounted());
  EXPECT_EQ(NamesOf(found.present), (Names{".git/config", ".git/hooks", ".bashrc", ".git/modules/a/config"}));
  EXPECT_EQ(found.present[1].target, "/workspace/.git/hooks");
  EXPECT_EQ(found.present[1].source, root_ / ".git/hooks");
}

TEST_F(Protecting, AWorktreesNameOfItsRepository) {
  Write(".git");
  const ProtectedFiles found = Find(Mounted());
  EXPECT_EQ(NamesOf(found.present), Names{".git"});
}

TEST_F(Protecting, SubmodulesOfSeveralParts) {
  Write(".git/modules/libs/.hidden/hooks/x");
  EXPECT_EQ(NamesOf(Find(Mounted()).present), Names{".git/modules/libs/.hidden/hooks"});
}

TEST_F(Protecting, WhatIsMadeInThePlaceOfAFileIsTold) {
  Write(".config");
  const CompiledPlan before{.protects = true, .guarded = FindGuarded(Mounted(), "")};
  fs::remove(root_ / ".config");
  Write(".config/fish/config.fish");
  EXPECT_EQ(FindAppeared(Mounted(), before), Names{"/workspace/.config/fish"});
}

// Whatever makes it one: a name of the list, of one of its patterns, another file in its place.
TEST_F(Protecting, WhatAppearedIsToldByAllNamesOfTheList) {
  Write(".git/config");
  const CompiledPlan before{.protects = true, .guarded = FindGuarded(Mounted(), "")};
  EXPECT_TRUE(FindAppeared(Mounted(), before).empty());
  EXPECT_EQ(FindAppeared(Mounted(), before, "/workspace/.git/config"), Names{"/workspace/.git/config"})
      << "whoever takes its cover away may not be done yet";
  Write(".git/modules/sub/hooks/post-checkout");
  Write(".git/config.lock");
  fs::rename(root_ / ".git/config.lock", root_ / ".git/config");
  fs::create_symlink("elsewhere", root_ / ".vscode");
  EXPECT_EQ(FindAppeared(Mounted(), before),
            (Names{"/workspace/.git/config", "/workspace/.git/modules/sub/hooks", "/workspace/.vscode"}));
  fs::remove_all(root_ / ".git");
  Write(".git");
  EXPECT_EQ(FindAppeared(Mounted(), before), (Names{"/workspace/.git", "/workspace/.vscode"}));
}

TEST_F(Protecting, OtherNamesOfAProtectedFile) {
  Write(".git/hooks/pre-commit");
  Write(".envrc");
  for (const ProtectedFile& file : Find(Mounted()).present) EXPECT_EQ(FindOtherNames(file), OtherNames::kNone);
  fs::create_hard_link(root_ / ".git/hooks/pre-commit", root_ / "cache.bin");
  fs::create_hard_link(root_ / ".envrc", root_ / "cache2.bin");
  for (const ProtectedFile& file : Find(Mounted()).present) EXPECT_EQ(FindOtherNames(file), OtherNames::kSome);
}

TEST_F(Protecting, TooMuchToLookThroughIsTold) {
  Write(".git/modules/a/config");
  for (int i = 0; i < 10'001; ++i) fs::create_directory(root_ / ".git/modules" / std::to_string(i));
  EXPECT_TRUE(Has(Find(Mounted()).unsearched, ".git/modules"));
}

// A guest may make as many as it likes, and is not to be waited for.
TEST_F(Protecting, VeryManyAreToldByTheirDirectories) {
  const CompiledPlan before{.protects = true, .guarded = FindGuarded(Mounted(), "")};
  Write(".envrc");
  for (int i = 0; i < 2'000; ++i) Write(fmt::format(".git/modules/{}/sub{}/config", i % 20, i));
  const std::vector<std::string> told = FindAppeared(Mounted(), before);
  EXPECT_EQ(told.size(), 21U);
  EXPECT_EQ(told[0], "/workspace/.envrc");
  EXPECT_EQ(told[1], "/workspace/.git/modules/0");
}

TEST_F(Protecting, LinksAreTold) {
  fs::create_directories(root_ / "elsewhere");
  fs::create_symlink("elsewhere", root_ / ".vscode");
  fs::create_symlink("elsewhere", root_ / ".git");
  const ProtectedFiles found = Find(Mounted());
  EXPECT_TRUE(Has(found.links, ".vscode"));
  EXPECT_TRUE(Has(found.links, ".git"));
  EXPECT_NE(std::ranges::find(found.links, ".git/config", &ProtectedFile::pattern), found.links.end());
  EXPECT_TRUE(found.present.empty());
}

TEST_F(Protecting, WhatAnotherMountSaysCounts) {
  Write(".git/config");
  Write(".git/hooks/x");
  Policy policy = Mounted().ReadWrite(root_ / ".git/config", "/workspace/.git/config");
  EXPECT_EQ(NamesOf(Find(policy).present), Names{".git/hooks"});
}

TEST_F(Protecting, NamesCanBeTakenAndAdded) {
  Write(".git/config");
  Write("Makefile");
  Policy policy = Mounted();
  policy.Set("files.protect", "Makefile");
  EXPECT_EQ(NamesOf(Find(policy).present), (Names{".git/config", "Makefile"}));
  EXPECT_TRUE(policy::Unprotect(policy, ".git/config"));
  EXPECT_FALSE(policy::Unprotect(policy, ".git/config"));
  EXPECT_EQ(NamesOf(Find(policy).present), Names{"Makefile"});
  EXPECT_TRUE(policy::Unprotect(policy, "all"));
  EXPECT_TRUE(Find(policy).present.empty());
}

}  // namespace
}  // namespace belljar::plan
