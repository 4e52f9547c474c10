#include "doctor/probe_cgroup.h"

#include <gtest/gtest.h>

namespace belljar::doctor {
namespace {

constexpr std::string_view kV2Mount =
    "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr std::string_view kHybridMounts =
    "31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    "33 31 0:30 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
    "34 31 0:31 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
constexpr std::string_view kHybridSelf =
    "4:memory:/user.slice\n3:cpu,cpuacct:/\n2:name=systemd:/user.slice/a.scope\n0::/user.slice/a.scope\n";

TEST(ParseCgroups, PureV2) {
  const auto all = ParseCgroups(kV2Mount, "0::/user.slice/user-1000.slice\n");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_TRUE(all[0].v2);
  EXPECT_EQ(all[0].own, "/sys/fs/cgroup/user.slice/user-1000.slice");
  EXPECT_EQ(all[0].top, "/sys/fs/cgroup");
  EXPECT_EQ(CgroupKind(all), "v2");
}

TEST(ParseCgroups, Hybrid) {
  const auto all = ParseCgroups(kHybridMounts, kHybridSelf);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].own, "/sys/fs/cgroup/memory/user.slice");
  EXPECT_EQ(all[1].own, "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(all[1].controllers, (std::vector<std::string>{"cpu", "cpuacct"}));
  EXPECT_EQ(CgroupKind(all), "hybrid");
}

TEST(ParseCgroups, SystemdTreeAloneIsNotV1) {
  const auto all = ParseCgroups(std::string(kV2Mount) + "33 31 0:30 / /x rw - cgroup cgroup rw,name=systemd\n",
                                "1:name=systemd:/\n0::/\n");
  EXPECT_EQ(all.size(), 2U);
  EXPECT_EQ(CgroupKind(all), "v2");
}

TEST(ParseCgroups, V1AndNone) {
  EXPECT_EQ(CgroupKind(ParseCgroups("35 31 0:32 / /c rw - cgroup cgroup rw,memory\n", "4:memory:/\n")), "v1");
  EXPECT_EQ(CgroupKind(ParseCgroups("", "4:memory:/\n0::/\n")), "none");
  EXPECT_EQ(CgroupKind(ParseCgroups(kV2Mount, "")), "none");
}

TEST(ParseCgroups, PartOfTheTreeMounted) {
  constexpr std::string_view kMount = "31 23 0:28 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(ParseCgroups(kMount, "0::/docker/abc\n").at(0).own, "/sys/fs/cgroup");
  EXPECT_EQ(ParseCgroups(kMount, "0::/docker/abc/run\n").at(0).own, "/sys/fs/cgroup/run");
  EXPECT_TRUE(ParseCgroups(kMount, "0::/docker/abcdef\n").empty());
}

TEST(ParseCgroups, OutsideTheCgroupNamespace) { EXPECT_TRUE(ParseCgroups(kV2Mount, "0::/../other\n").empty()); }

TEST(ParseCgroups, EscapedMountPoint) {
  const auto all = ParseCgroups("31 23 0:28 / /my\\040groups rw - cgroup2 none rw\n", "0::/a\n");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].own, "/my groups/a");
}

TEST(ParseCgroups, Garbage) {
  EXPECT_TRUE(ParseCgroups("- - - -\n31\n\\", "x\n::\n0:").empty());
  EXPECT_TRUE(ParseCgroups("31 23 0:28 / /sys/fs/cgroup rw -\n", "0::/\n").empty());
}

}  // namespace
}  // namespace belljar::doctor
