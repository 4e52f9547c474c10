#include "jail/sweep.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gtest/gtest.h>

#include <string>

namespace belljar::jail {
namespace {

std::string TemporaryDirectory() {
  char path[] = "/tmp/belljar-test-XXXXXX";
  EXPECT_NE(::mkdtemp(path), nullptr);
  return path;
}

TEST(RemoveTree, DeeperThanAnyPathOrDescriptorLimit) {
  const std::string root = TemporaryDirectory();
  int directory = ::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int depth = 0; depth < 1500; ++depth) {
    ASSERT_EQ(::mkdirat(directory, "d", 0700), 0);
    const int next = ::openat(directory, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ::close(directory);
    directory = next;
  }
  ::close(directory);
  EXPECT_EQ(RemoveTree(root.c_str()), 0);
  EXPECT_NE(::access(root.c_str(), F_OK), 0);
}

TEST(RemoveTree, WideAndLocked) {
  const std::string root = TemporaryDirectory();
  for (int i = 0; i < 2000; ++i) {
    const int fd = ::open((root + "/file" + std::to_string(i)).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0);
    ASSERT_GE(fd, 0);
    ::close(fd);
  }
  ASSERT_EQ(::mkdir((root + "/locked").c_str(), 0700), 0);
  ASSERT_EQ(::mkdir((root + "/locked/inner").c_str(), 0700), 0);
  ASSERT_EQ(::chmod((root + "/locked").c_str(), 0), 0);
  EXPECT_EQ(RemoveTree(root.c_str()), 0);
  EXPECT_NE(::access(root.c_str(), F_OK), 0);
}

TEST(RemoveTree, DoesNotFollowLinks) {
  const std::string root = TemporaryDirectory();
  const std::string outside = TemporaryDirectory();
  ASSERT_EQ(::mkdir((outside + "/keep").c_str(), 0700), 0);
  ASSERT_EQ(::symlink(outside.c_str(), (root + "/link").c_str()), 0);
  EXPECT_EQ(RemoveTree(root.c_str()), 0);
  EXPECT_EQ(::access((outside + "/keep").c_str(), F_OK), 0);
  EXPECT_EQ(RemoveTree(outside.c_str()), 0);
}

TEST(RemoveTree, AbsentIsFine) { EXPECT_EQ(RemoveTree("/tmp/belljar-test-that-is-not-there"), 0); }

// Or a janitor tries for five seconds to remove what a wrong TMPDIR kept its owner from making.
TEST(RemoveTree, WhatIsNoDirectoryIsLeftAlone) {
  const std::string root = TemporaryDirectory();
  const std::string file = root + "/file";
  const std::string link = root + "/link";
  ::close(::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  ASSERT_EQ(::symlink("/tmp", link.c_str()), 0);
  EXPECT_EQ(RemoveTree((file + "/belljar-run").c_str()), 0);
  EXPECT_EQ(RemoveTree(file.c_str()), 0);
  EXPECT_EQ(RemoveTree(link.c_str()), 0);
  EXPECT_EQ(::access(file.c_str(), F_OK), 0);
  EXPECT_EQ(::access(link.c_str(), F_OK), 0);
  EXPECT_EQ(RemoveTree(root.c_str()), 0);
}

TEST(KillChildren, FindsDetachedGrandchildren) {
  const pid_t init = ::fork();
  if (init == 0) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    for (int i = 0; i < 5; ++i) {
      const pid_t child = ::fork();
      if (child != 0) {
        siginfo_t ended{};  // When it has ended, its child is ours; it stays a zombie, for KillChildren to meet.
        ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
        continue;
      }
      ::setsid();
      if (::fork() != 0) ::_exit(0);  // The grandchild is an orphan, in a session of its own.
      for (;;) ::pause();
    }
    KillChildren(Kin::kChildren);
    ::_exit(::waitpid(-1, nullptr, WNOHANG) < 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(init, &status, 0), init);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace belljar::jail
