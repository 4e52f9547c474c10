#include "sys/mount_table.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace belljar::sys {
namespace {

TEST(MountTable, ReadsWhatTheKernelWrites) {
  const auto mounts = ParseMountTable(
      "22 28 0:20 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
      "63 43 0:39 / /srv/a\\040b/proc rw,relatime - proc  rw\n"
      "64 43 0:22 /x /y rw,relatime shared:1 master:2 - ext4 /dev/a - b rw,errors=continue\n"
      "not a line\n"
      "1 2 - proc proc rw\n");
  ASSERT_EQ(mounts.size(), 3U);
  EXPECT_EQ(mounts[0].type, "sysfs");
  EXPECT_EQ(mounts[1].point, "/srv/a b/proc");
  EXPECT_EQ(mounts[1].type, "proc") << "a mount may have been given no source";
  EXPECT_EQ(mounts[1].options, "rw");
  EXPECT_EQ(mounts[2].root, "/x");
  EXPECT_EQ(mounts[2].options, "rw,errors=continue");
}

TEST(MountTable, KnowsTheKernelsOwn) {
  const auto mounts = KernelMounts();
  ASSERT_TRUE(mounts);
  EXPECT_NE(std::find(mounts->begin(), mounts->end(), "/proc"), mounts->end());
}

}  // namespace
}  // namespace belljar::sys
