#include "launch/verdict.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

namespace belljar::launch {
namespace {

using plan::Report;
using plan::ReportKind;

Report Ended(int status) {
  Report report{};
  report.kind = ReportKind::kEnded;
  report.status = status;
  return report;
}
int Exit(int code) { return code << 8; }

Result Judge(const Observed& observed, const Policy& policy = {}) {
  Result result;
  Decide(observed, policy, "mount /proc", result);
  return result;
}

TEST(Verdict, OwnExit) {
  const Result result = Judge({.ended = Ended(Exit(3)), .started = true});
  EXPECT_EQ(result.verdict, Verdict::kExited);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.message, "");
}

TEST(Verdict, OwnSignal) {
  const Result result = Judge({.ended = Ended(SIGSEGV), .started = true});
  EXPECT_EQ(result.verdict, Verdict::kSignaled);
  EXPECT_EQ(result.signal, SIGSEGV);
  EXPECT_NE(result.message.find("SIGSEGV"), std::string::npos);
}

// What the kernel did to the command is never told as the command's own signal 9.
TEST(Verdict, OutOfMemoryIsNotSignalNine) {
  const Result result = Judge({.ended = Ended(SIGKILL), .started = true, .oom_kills = 1});
  EXPECT_EQ(result.verdict, Verdict::kOutOfMemory);
  EXPECT_FALSE(result.signal.has_value());
  EXPECT_NE(result.message.find("--memory"), std::string::npos);
}

// The kernel may choose init, and whoever looks at it then sees nothing any more.
TEST(Verdict, OutOfMemoryIsNotALostInit) {
  EXPECT_EQ(Judge({.killed = KillReason::kLostInit, .started = true, .oom_kills = 1}).verdict, Verdict::kOutOfMemory);
  EXPECT_EQ(Judge({.killed = KillReason::kLostInit, .started = true}).verdict, Verdict::kFailed);
}

TEST(Verdict, MemoryThatNoCgroupCounts) {
  const Result result = Judge({.killed = KillReason::kUncounted, .started = true});
  EXPECT_EQ(result.verdict, Verdict::kOutOfMemory);
  EXPECT_NE(result.message.find("locks of files"), std::string::npos);
  EXPECT_NE(result.message.find("--memory"), std::string::npos);
}

TEST(Verdict, ObjectsThatNoPolicyAllows) {
  const Result result = Judge({.killed = KillReason::kObjects, .started = true});
  EXPECT_EQ(result.verdict, Verdict::kOutOfMemory);
  EXPECT_NE(result.message.find("16,384 locks of files"), std::string::npos);
  EXPECT_EQ(result.message.find("--memory"), std::string::npos) << "more memory would not help";
}

TEST(Verdict, WallIsNotACrash) {
  Report deadline{};
  deadline.kind = ReportKind::kDeadline;
  EXPECT_EQ(Judge({.ended = deadline, .started = true}).verdict, Verdict::kTimedOut);
  EXPECT_EQ(Judge({.killed = KillReason::kWall, .ended = Ended(SIGKILL), .started = true}).verdict, Verdict::kTimedOut);
}

TEST(Verdict, FirstReasonWins) {
  const Observed observed{.killed = KillReason::kCancelled,
                          .ended = Ended(SIGKILL),
                          .started = true,
                          .oom_kills = 1,
                          .processes_refused = 5};
  EXPECT_EQ(Judge(observed).verdict, Verdict::kCancelled);
}

TEST(Verdict, EachKillReasonHasItsVerdictAndNamesItsLimit) {
  const std::tuple<KillReason, Verdict, const char*> cases[] = {
      {KillReason::kWall, Verdict::kTimedOut, "--wall"},
      {KillReason::kCpuTime, Verdict::kCpuTime, "--cpu-time"},
      {KillReason::kMemory, Verdict::kOutOfMemory, "--memory"},
      {KillReason::kProcesses, Verdict::kProcessLimit, "--processes"},
      {KillReason::kDisk, Verdict::kDiskLimit, "--disk"},
      {KillReason::kOutput, Verdict::kOutputLimit, "--output"},
      {KillReason::kCancelled, Verdict::kCancelled, "caller"},
      {KillReason::kLostInit, Verdict::kFailed, "init"},
  };
  for (const auto& [reason, verdict, word] : cases) {
    const Result result = Judge({.killed = reason, .started = true});
    EXPECT_EQ(result.verdict, verdict);
    EXPECT_NE(result.message.find(word), std::string::npos) << result.message;
  }
}

TEST(Verdict, ForeignArchitecture) {
  EXPECT_EQ(Judge({.ended = Ended(SIGSYS), .started = true}).verdict, Verdict::kSyscall);
}

TEST(Verdict, FileSizeOnlyWhenLimited) {
  Policy policy;
  EXPECT_EQ(Judge({.ended = Ended(SIGXFSZ), .started = true}, policy).verdict, Verdict::kSignaled);
  policy.limits.file_size = 1 << 20;
  EXPECT_EQ(Judge({.ended = Ended(SIGXFSZ), .started = true}, policy).verdict, Verdict::kFileSize);
}

TEST(Verdict, FullDiskMattersOnlyToAFailure) {
  Report full = Ended(Exit(1));
  full.disk[0].full_bytes = 1;
  EXPECT_EQ(Judge({.ended = full, .started = true}).verdict, Verdict::kDiskLimit);
  EXPECT_EQ(Judge({.ended = full, .started = true}).exit_code, 1);
  full.status = Exit(0);
  EXPECT_EQ(Judge({.ended = full, .started = true}).verdict, Verdict::kExited);
}

TEST(Verdict, SetupFailureNamesTheStepAndNothingRan) {
  Report failed{};
  failed.kind = ReportKind::kSetupFailed;
  failed.error = EPERM;
  const Result result = Judge({.setup_failed = failed});
  EXPECT_EQ(result.verdict, Verdict::kFailed);
  EXPECT_NE(result.message.find("mount /proc"), std::string::npos);
  EXPECT_NE(result.message.find("never ran"), std::string::npos);
}

TEST(Verdict, NotFoundAndNotExecutable) {
  Report failed{};
  failed.kind = ReportKind::kExecFailed;
  failed.error = ENOENT;
  EXPECT_EQ(Judge({.exec_failed = failed}).exit_code, 127);
  failed.error = EACCES;
  EXPECT_EQ(Judge({.exec_failed = failed}).exit_code, 126);
}

// An init that vanishes is never a success, whatever its status says.
TEST(Verdict, SilentInitIsAFailure) {
  EXPECT_EQ(Judge({.started = true, .init_status = 0}).verdict, Verdict::kFailed);
  EXPECT_EQ(Judge({.started = true, .init_status = SIGKILL}).verdict, Verdict::kFailed);
}

}  // namespace
}  // namespace belljar::launch
