#include "jail/sweep.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
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

// From here on this process has no files but those below `directory`, and no rights over those of others: should the
// remover be led astray all the same, it must not be the host that pays. False when that can't be had.
bool Confine(const std::string& directory) {
  const uid_t uid = ::geteuid() == 0 ? 65534 : ::geteuid();
  if (::geteuid() != 0 && ::unshare(CLONE_NEWUSER) != 0) return false;
  if (::chroot(directory.c_str()) != 0 || ::chdir("/") != 0) return false;
  return ::setresuid(uid, uid, uid) == 0 || ::geteuid() == 65534;
}

// A tree of 300 directories, each with a file; and a helper that moves the 20th of them away as soon as the remover is
// below it, to a place with files beside and above it. True when those are all still there.
bool SurvivesAMove() {
  ::mkdir("/precious", 0700);
  ::mkdir("/precious/deep", 0700);
  for (int i = 0; i < 20; ++i) {
    for (const char* place : {"/precious/", "/precious/deep/", "/"}) {
      ::close(::open((place + std::to_string(i)).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    }
  }
  ::mkdir("/private", 0700);
  std::string at = "/private";
  std::string from;
  for (int depth = 0; depth < 300; ++depth) {
    at += "/d";
    if (depth == 20) from = at;
    ::mkdir(at.c_str(), 0700);
    ::close(::open((at + "/f").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  }
  const pid_t mover = ::fork();
  if (mover == 0) {
    while (::access((from + "/d/d/f").c_str(), F_OK) == 0) {
    }
    while (::rename(from.c_str(), "/precious/deep/moved") != 0 && ::access("/private", F_OK) == 0) {
    }
    ::_exit(0);
  }
  (void)RemoveTree("/private");
  ::kill(mover, SIGKILL);
  ::waitpid(mover, nullptr, 0);
  for (int i = 0; i < 20; ++i) {
    for (const char* place : {"/precious/", "/precious/deep/", "/"}) {
      if (::access((place + std::to_string(i)).c_str(), F_OK) != 0) return false;
    }
  }
  (void)RemoveTree("/precious");
  return true;
}

TEST(RemoveTree, IsNotLedOutByWhoMovesDirectories) {
  for (int round = 0; round < 10; ++round) {
    const std::string place = TemporaryDirectory();
    if (::geteuid() == 0) {
      ASSERT_EQ(::chown(place.c_str(), 65534, 65534), 0);
    }
    const pid_t child = ::fork();
    if (child == 0) {
      if (!Confine(place)) ::_exit(2);
      ::_exit(SurvivesAMove() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(RemoveTree(place.c_str()), 0);
    if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "no chroot and no user namespace to be safe in";
    ASSERT_EQ(status, 0) << "round " << round;
  }
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
    (void)KillChildren(Kin::kChildren);
    ::_exit(::waitpid(-1, nullptr, WNOHANG) < 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(init, &status, 0), init);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace belljar::jail
