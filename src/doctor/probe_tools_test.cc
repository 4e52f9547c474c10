#include "doctor/probe_tools.h"

#include <gtest/gtest.h>

namespace belljar::doctor {
namespace {

TEST(FindVersion, AsTheToolsPrintIt) {
  EXPECT_EQ(FindVersion("bubblewrap 0.8.0\n"), "0.8.0");
  EXPECT_EQ(FindVersion("Docker version 20.10.24+dfsg1, build 297e128\n"), "20.10.24+dfsg1");
  EXPECT_EQ(FindVersion("runc version 1.1.5+ds1-1+deb12u1\ncommit: 1.1.5\nspec: 1.0.2-dev\n"), "1.1.5+ds1-1+deb12u1");
  EXPECT_EQ(FindVersion("nftables v1.0.6 (Lester Gooch #5)\n"), "1.0.6");
  EXPECT_EQ(FindVersion("runsc version release-20220207.0\nspec: 1.0.2\n"), "20220207.0");
  EXPECT_EQ(FindVersion("crun 2 version 1.8.1\n"), "1.8.1");
  EXPECT_EQ(FindVersion("no number here"), "");
  EXPECT_EQ(FindVersion(""), "");
}

TEST(CompareVersions, ByNumberNotByText) {
  EXPECT_LT(CompareVersions("1.1.5", "1.1.12"), 0);
  EXPECT_EQ(CompareVersions("1.1.12+ds1", "1.1.12"), 0);
  EXPECT_GT(CompareVersions("1.2", "1.1.12"), 0);
  EXPECT_EQ(CompareVersions("1.2", "1.2.0"), 0);
  EXPECT_LT(CompareVersions("", "0.0.1"), 0);
}

TEST(KnownProblem, Runc) {
  EXPECT_NE(KnownProblem("runc", "1.1.11", "v2").find("CVE-2024-21626"), std::string::npos);
  EXPECT_NE(KnownProblem("runc", "1.1.12", "v2").find("CVE-2025-31133"), std::string::npos);
  EXPECT_NE(KnownProblem("runc", "1.3.2", "v2").find("1.3.3"), std::string::npos);
  EXPECT_EQ(KnownProblem("runc", "1.2.8", "v2"), "");
  EXPECT_EQ(KnownProblem("runc", "1.3.3", "v2"), "");
}

TEST(KnownProblem, SaysThatDistributionsPatch) {
  EXPECT_NE(KnownProblem("runc", "1.1.5+ds1-1+deb12u1", "v2").find("patched"), std::string::npos);
  EXPECT_EQ(KnownProblem("runc", "1.1.5", "v2").find("patched"), std::string::npos);
}

TEST(KnownProblem, CrunDependsOnTheHost) {
  EXPECT_NE(KnownProblem("crun", "1.8.1", "hybrid"), "");
  EXPECT_EQ(KnownProblem("crun", "1.8.1", "v2"), "");
  EXPECT_EQ(KnownProblem("crun", "1.14", "hybrid"), "");
}

TEST(KnownProblem, OthersAndUnknown) {
  EXPECT_NE(KnownProblem("bwrap", "0.4.0", "v2").find("CVE-2020-5291"), std::string::npos);
  EXPECT_EQ(KnownProblem("bwrap", "0.4.1", "v2"), "");
  EXPECT_NE(KnownProblem("firejail", "0.9.68", "v2"), "");
  EXPECT_EQ(KnownProblem("nft", "0.0.1", "v2"), "");
  EXPECT_EQ(KnownProblem("runc", "", "v2"), "");
}

}  // namespace
}  // namespace belljar::doctor
