#include "doctor/probe_child.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <gtest/gtest.h>

namespace belljar::doctor {
namespace {

using End = Trial::End;

// Every probe must have reaped all it started, and its grandchildren must be gone too.
void ExpectNoChildren() {
  errno = 0;
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG | __WALL), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(TryInChild, PassesAValueBack) {
  const int seven = 7;
  const Trial trial = TryInChild(0, [&] { return Finding::Passed(seven * 6); });
  EXPECT_TRUE(trial.passed());
  EXPECT_EQ(trial.value, 42);
  EXPECT_EQ(trial.Text(), "");
  ExpectNoChildren();
}

TEST(TryInChild, NamesTheStepThatFailed) {
  const Trial trial = TryInChild(0, [] { return Finding::Failed("open the door", EACCES); });
  EXPECT_EQ(trial.end, End::kFailed);
  EXPECT_TRUE(trial.FailedAt("open the door"));
  EXPECT_FALSE(trial.FailedAt(kStepClone));
  EXPECT_EQ(trial.Text(), "open the door: Permission denied");
}

TEST(TryInChild, SurvivesABodyThatIsKilled) {
  const Trial trial = TryInChild(0, [] {
    ::kill(::getpid(), SIGSYS);
    return Finding::Passed();
  });
  EXPECT_EQ(trial.end, End::kKilled);
  EXPECT_EQ(trial.signal, SIGSYS);
  EXPECT_EQ(trial.Text(), "killed by a seccomp filter");
  ExpectNoChildren();
}

TEST(TryInChild, GivesUpOnABodyThatHangs) {
  const Trial trial = TryInChild(
      0,
      [] {
        for (;;) ::pause();
        return Finding::Passed();
      },
      std::chrono::milliseconds(50));
  EXPECT_EQ(trial.end, End::kTimedOut);
  ExpectNoChildren();
}

TEST(TryInChild, ReportsNamespacesThatCanNotBeMade) {
  // The kernel refuses this pair of flags whoever asks.
  const Trial trial = TryInChild(CLONE_NEWNS | CLONE_FS, [] { return Finding::Passed(); });
  EXPECT_TRUE(trial.FailedAt(kStepClone));
  EXPECT_EQ(trial.error, EINVAL);
  ExpectNoChildren();
}

TEST(TryInChild, RunsTheBodyInsideTheNamespaces) {
  const Trial trial = TryInChild(CLONE_NEWUSER | CLONE_NEWPID, [] { return Finding::Passed(::getpid()); });
  if (trial.FailedAt(kStepClone)) GTEST_SKIP() << "no user namespaces here: " << trial.Text();
  EXPECT_EQ(trial.value, 1);
  ExpectNoChildren();
}

TEST(TryInChild, KillsTheInnerChildToo) {
  const Trial trial = TryInChild(
      CLONE_NEWUSER,
      [] {
        for (;;) ::pause();
        return Finding::Passed();
      },
      std::chrono::milliseconds(50));
  if (trial.FailedAt(kStepClone)) GTEST_SKIP() << "no user namespaces here: " << trial.Text();
  EXPECT_EQ(trial.end, End::kTimedOut);
  ExpectNoChildren();
}

}  // namespace
}  // namespace belljar::doctor
