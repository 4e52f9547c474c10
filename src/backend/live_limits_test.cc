// What commands of a live sandbox may use, what they may leave behind, and what happens when the sandbox's owner dies.
#include <belljar/engine.h>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sys/processes_in_tests.h"

namespace belljar {
namespace {

using sys::Eventually;
using sys::WithArgument;

using std::chrono::milliseconds;

std::vector<std::string> Shell(std::string script) { return {"/bin/sh", "-c", std::move(script)}; }
std::vector<std::string> Python(std::string script) { return {"/usr/bin/python3", "-c", std::move(script)}; }

std::string UniqueSeconds() {
  static int count = 0;
  return fmt::format("7{:03}.{}", ++count, ::getpid());
}

class LiveLimits : public testing::Test {
 protected:
  void Open(const Policy& policy) {
    auto engine = Engine::Open();
    ASSERT_TRUE(engine);
    engine_.emplace(std::move(*engine));
    auto sandbox = engine_->Open(policy);
    ASSERT_TRUE(sandbox) << sandbox.error().Text();
    sandbox_.emplace(std::move(*sandbox));
  }
  Result Run(const std::vector<std::string>& argv, const RunOptions& options = {}) {
    auto result = sandbox_->Run(argv, options);
    EXPECT_TRUE(result) << result.error().Text();
    return result ? *result : Result{};
  }
  std::optional<Engine> engine_;
  std::optional<LiveSandbox> sandbox_;
};

constexpr char kBurn[] = "while :; do :; done";

TEST_F(LiveLimits, EachCommandHasItsOwnCpuTime) {
  Open(Policy().Wall("600s"));
  auto peaceful = sandbox_->Start({"/bin/sleep", "600"});
  ASSERT_TRUE(peaceful);
  for (int i = 0; i < 2; ++i) {
    const Result burnt = Run(Shell(kBurn), {.cpu_time_ns = 200'000'000});
    EXPECT_EQ(burnt.verdict, Verdict::kCpuTime) << burnt.message;
    EXPECT_GE(burnt.usage.cpu_ms, 200U);
    const auto guard = std::ranges::find(burnt.receipt.guards, "cpu_time limit", &GuardReceipt::guard);
    EXPECT_EQ(guard->state, GuardState::kPartial) << "the sandbox itself has none";
  }
  EXPECT_FALSE(peaceful->over());
  EXPECT_TRUE(Run({"/bin/true"}, {.cpu_time_ns = 200'000'000}).ok()) << "what others used is not its own";
}

TEST_F(LiveLimits, CpuTimeIsThatOfAllThatACommandStarted) {
  Open(Policy().Wall("600s").CpuTime("300ms"));
  const Result detached = Run(Shell(fmt::format("(setsid sh -c '{}' &); sleep 600", kBurn)));
  EXPECT_EQ(detached.verdict, Verdict::kCpuTime) << detached.message;
  const Result in_turn = Run(Shell("while :; do sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; done"));
  EXPECT_EQ(in_turn.verdict, Verdict::kCpuTime) << in_turn.message;
}

TEST_F(LiveLimits, WhatACommandLeavesRunningEndsWithIt) {
  const std::string seconds = UniqueSeconds();
  Open(Policy().Wall("600s"));
  const Result result = Run(Shell(fmt::format("sleep {} & echo started", seconds)));
  EXPECT_EQ(result.out.data, "started\n");
  EXPECT_FALSE(result.background);
  EXPECT_TRUE(WithArgument(seconds).empty());
}

TEST_F(LiveLimits, WhatIsKeptGoesOnUntilTheSandboxCloses) {
  const std::string seconds = UniqueSeconds();
  Open(Policy().Wall("600s").Set("background", "keep"));
  // It holds the streams, too: nobody waits for their end, and what was written before is there.
  const Result result = Run(Shell(fmt::format("sleep {} & setsid sleep {} & echo started; exit 3", seconds, seconds)));
  EXPECT_EQ(result.verdict, Verdict::kExited) << result.message;
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out.data, "started\n");
  EXPECT_TRUE(result.background);
  const Result other = Run(Shell("echo other"));
  EXPECT_EQ(other.out.data, "other\n");
  EXPECT_FALSE(other.background) << "it has left nothing";
  EXPECT_TRUE(Eventually([&] { return WithArgument(seconds).size() == 2; }));
  sandbox_.reset();
  EXPECT_TRUE(Eventually([&] { return WithArgument(seconds).empty(); }));
}

TEST_F(LiveLimits, WhatIsKeptServesLaterCommands) {
  Open(Policy().Wall("600s").Set("background", "keep"));
  const Result started =
      Run(Python("import os, socket\n"
                 "server = socket.socket(socket.AF_UNIX); server.bind('/tmp/server'); server.listen()\n"
                 "if os.fork() == 0:\n"
                 "  while True:\n"
                 "    client, _ = server.accept(); client.sendall(b'served\\n'); client.close()\n"));
  EXPECT_TRUE(started.ok() && started.background) << started.message << started.err.data;
  const Result asked =
      Run(Python("import socket\n"
                 "c = socket.socket(socket.AF_UNIX); c.connect('/tmp/server'); print(c.recv(99).decode(), end='')"));
  EXPECT_EQ(asked.out.data, "served\n") << asked.err.data;
}

TEST_F(LiveLimits, OfWhatDoesNotExitByItselfNothingIsKept) {
  const std::string seconds = UniqueSeconds();
  Open(Policy().Wall("600s").Set("background", "keep"));
  const Result late = Run(Shell(fmt::format("sleep {} & wait", seconds)), {.wall_ns = 200'000'000});
  EXPECT_EQ(late.verdict, Verdict::kTimedOut) << late.message;
  EXPECT_FALSE(late.background);
  const Result killed = Run(Shell(fmt::format("sleep {} & kill -KILL $$", seconds)));
  EXPECT_EQ(killed.verdict, Verdict::kSignaled) << killed.message;
  EXPECT_FALSE(killed.background);
  EXPECT_TRUE(WithArgument(seconds).empty());
}

// Output without an end, and a pipe whose lock is held: neither keeps the one who waits for the command.
TEST_F(LiveLimits, WhatIsKeptCanNotHoldTheResult) {
  Open(Policy().Wall("600s").Set("background", "keep"));
  const Result flood =
      Run(Shell("(touch /tmp/floods; while :; do echo flood; done) & while [ ! -e /tmp/floods ]; do sleep 0.01; done"));
  EXPECT_TRUE(flood.background);
  EXPECT_EQ(flood.verdict, Verdict::kExited) << flood.message;
  const Result held =
      Run(Python(fmt::format("splice = '{} '\n", SYS_splice) +
                 "import ctypes, os, socket, time\n"
                 "a, b = socket.socketpair(); libc = ctypes.CDLL(None); pid = os.fork()\n"
                 "if pid == 0: libc.splice(a.fileno(), None, 1, None, 1, 0)\n"
                 "while not open(f'/proc/{pid}/syscall').read().startswith(splice): time.sleep(0.01)\n"));
  EXPECT_EQ(held.verdict, Verdict::kFailed) << held.message;
  EXPECT_NE(held.message.find("output could not be read"), std::string::npos) << held.message;
  EXPECT_EQ(Run({"/bin/true"}).verdict, Verdict::kFailed) << "the sandbox has ended with it";
}

// A segment outlives its command. Where no cgroup counts it, what may be had is the sandbox's, not each command's.
TEST_F(LiveLimits, SharedMemoryOfAllCommandsTogetherIsLimited) {
  Open(Policy().Wall("600s").Memory("64M"));
  const auto segment = Python(
      "import ctypes\n"
      "c = ctypes.CDLL(None, use_errno=True); c.shmat.restype = ctypes.c_void_p; size = 12 << 20\n"
      "at = c.shmat(c.shmget(0, size, 0o1600), None, 0)\n"
      "assert at != 2 ** 64 - 1, ctypes.get_errno()\n"
      "ctypes.memset(at, 1, size)\n");
  EXPECT_TRUE(Run(segment).ok()) << "one is within the limit";
  int had = 1;
  while (had < 6 && Run(segment).ok()) ++had;
  EXPECT_LT(had, 6);
}

// Nor does another command that has got its output from it, whether it fills it or holds it.
TEST_F(LiveLimits, AnotherCommandCanNotHoldTheResult) {
  for (const std::string keep : {"while True: os.write(fd, b'x' * 65536)",
                                 "a, b = socket.socketpair(); open('/tmp/holds', 'w'); "
                                 "ctypes.CDLL(None).splice(a.fileno(), None, fd, None, 1, 0)"}) {
    Open(Policy().Wall("600s"));
    auto keeper = sandbox_->Start(
        Python("import os, socket, ctypes\n"
               "s = socket.socket(socket.AF_UNIX); s.bind('/tmp/socket'); s.listen(); open('/tmp/listens', 'w')\n"
               "c, _ = s.accept(); fd = socket.recv_fds(c, 1, 1)[1][0]; open('/tmp/holds', 'w')\n" +
               keep));
    ASSERT_TRUE(keeper);
    const RunOptions slow{
        .on_output = [](OutputStream, std::string_view) { std::this_thread::sleep_for(milliseconds(1)); }};
    const Result result = Run(Python("import os, socket, time\n"
                                     "while not os.path.exists('/tmp/listens'): time.sleep(0.01)\n"
                                     "s = socket.socket(socket.AF_UNIX); s.connect('/tmp/socket')\n"
                                     "socket.send_fds(s, [b'x'], [1])\n"
                                     "while not os.path.exists('/tmp/holds'): time.sleep(0.01)\n"),
                              slow);
    EXPECT_TRUE(result.verdict == Verdict::kExited || result.verdict == Verdict::kFailed) << result.message;
    EXPECT_TRUE(result.verdict == Verdict::kFailed || !keeper->over()) << "it was not waited for";
    keeper->Cancel();
    sandbox_.reset();
  }
}

TEST_F(LiveLimits, TightenedLimitsHold) {
  const Policy policy = Policy().Wall("600s").Memory("512M").Processes("64");
  Open(policy);
  const auto hungry = Python("x = b'x' * (128 << 20); print('had it')");
  EXPECT_EQ(Run(hungry).out.data, "had it\n");
  ASSERT_TRUE(sandbox_->Tighten(Policy(policy).Wall("100ms")));
  const Result late = Run({"/bin/sleep", "600"});
  EXPECT_EQ(late.verdict, Verdict::kTimedOut) << late.message;
  EXPECT_NE(late.message.find("0.1s"), std::string::npos) << late.message;
  ASSERT_TRUE(sandbox_->Tighten(Policy(policy).Wall("100ms").OpenFiles("64").FileSize("4K").OutputLimit("0")));
  EXPECT_EQ(Run(Shell("test $(ulimit -n) = 64")).exit_code, 0);
  EXPECT_EQ(Run(Shell("exec head -c 8192 /dev/zero > /tmp/x")).verdict, Verdict::kFileSize);
}

TEST_F(LiveLimits, LessMemoryHoldsAtOnce) {
  const Policy policy = Policy().Wall("600s").Memory("512M");
  Open(policy);
  auto holder = sandbox_->Start(Python("x = b'x' * (128 << 20); open('/tmp/has', 'w'); import time; time.sleep(600)"));
  ASSERT_TRUE(holder);
  ASSERT_TRUE(Run(Shell("while [ ! -e /tmp/has ]; do sleep 0.01; done")).ok());
  const auto lowered = sandbox_->Tighten(Policy(policy).Memory("64M"));
  ASSERT_TRUE(lowered) << lowered.error().Text();
  const Result& over = holder->Wait();
  EXPECT_EQ(over.verdict, Verdict::kOutOfMemory) << over.message;
  EXPECT_NE(over.message.find("64M"), std::string::npos) << over.message;
}

TEST_F(LiveLimits, LessProcessesHoldAtOnce) {
  const Policy policy = Policy().Wall("600s");
  Open(policy);
  auto crowd = sandbox_->Start(Shell("for i in 1 2 3 4 5 6 7 8 9; do sleep 600 & done; touch /tmp/all; wait"));
  ASSERT_TRUE(crowd);
  ASSERT_TRUE(Run(Shell("while [ ! -e /tmp/all ]; do sleep 0.01; done")).ok());
  ASSERT_TRUE(sandbox_->Tighten(Policy(policy).Processes("4")));
  EXPECT_EQ(crowd->Wait().verdict, Verdict::kProcessLimit) << crowd->Wait().message;
}

// Its steward is its own to pay for, as is that of the one before until it is gone; what waits for the next one is not.
TEST_F(LiveLimits, ACommandHasTheProcessesOfTheLimit) {
  Open(Policy().Wall("600s").Processes("6"));
  ASSERT_TRUE(Run({"/bin/true"}).ok());
  const Result full = Run(Shell("for i in 1 2 3; do sleep 600 & p=\"$p $!\"; done; kill $p; wait; echo had all"));
  ASSERT_EQ(full.out.data, "had all\n") << full.message << full.err.data;
  const Result more =
      Run(Shell("for i in 1 2 3 4 5 6 7 8; do sleep 600 & p=\"$p $!\"; done; kill $p; wait; echo had all"));
  EXPECT_FALSE(more.out.data.contains("had all"));
}

// Without privileges nobody can look into the process that waits, as little as into a guest that hides. That would be
// noticed within three seconds.
TEST_F(LiveLimits, WaitingForTheNextCommandIsNotHiding) {
  Open(Policy().Wall("600s"));
  ASSERT_TRUE(Run({"/bin/true"}).ok());
  const Result late = Run({"/bin/sleep", "5"});
  EXPECT_TRUE(late.ok()) << late.message;
}

TEST_F(LiveLimits, NothingIsLoosened) {
  const Policy policy = Policy().Wall("60s").Memory("256M");
  Open(policy);
  const auto refused = [&](const Policy& wanted, const char* key) {
    const auto done = sandbox_->Tighten(wanted);
    ASSERT_FALSE(done) << key;
    EXPECT_NE(done.error().step.find(key), std::string::npos) << done.error().Text();
    EXPECT_FALSE(done.error().hint.empty());
  };
  refused(Policy(policy).Memory("512M"), "limits.memory");
  refused(Policy(policy).Wall("unlimited"), "limits.wall");
  refused(Policy(policy).Memory("64M").Disk("1M"), "limits.disk");
  refused(Policy(policy).Tmp("1M"), "files.tmp");
  refused(Policy(policy).ReadOnly("/tmp", "/host"), "files.mounts");
  refused(Policy(policy).Env("A", "b"), "environment.set");
  refused(Policy(policy).Set("background", "keep"), "background");
  EXPECT_FALSE(sandbox_->Tighten(Policy(policy).DangerouslyShareHostNetwork()));
  EXPECT_EQ(Run(Python("x = b'x' * (128 << 20); print('had it')")).out.data, "had it\n") << "nothing has changed";
}

// What nobody watched from the start nobody would watch later.
TEST_F(LiveLimits, WhatHadNoLimitGetsNone) {
  const Policy policy = Policy().Wall("600s").Memory("unlimited").Processes("unlimited");
  Open(policy);
  for (const Policy& wanted : {Policy(policy).Memory("64M"), Policy(policy).Processes("8")}) {
    const auto done = sandbox_->Tighten(wanted);
    ASSERT_FALSE(done) << "it would have to hold";
    EXPECT_NE(done.error().hint.find("from the start"), std::string::npos) << done.error().Text();
  }
  EXPECT_TRUE(sandbox_->Tighten(Policy(policy).CpuTime("300ms").Wall("500s")));
  EXPECT_EQ(Run(Shell(kBurn)).verdict, Verdict::kCpuTime) << "that is each command's own";
}

// All of it, whatever state it was in: commands, what they left, init, stewards and launcher.
TEST(LiveOwner, KilledItLeavesNothing) {
  const std::string seconds = UniqueSeconds();
  const pid_t owner = ::fork();
  if (owner == 0) {
    auto engine = Engine::Open();
    auto sandbox = engine->Open(Policy().Wall("600s").Set("background", "keep"));
    if (!sandbox) ::_exit(1);
    (void)sandbox->Run(Shell(fmt::format("setsid sleep {} & exit 0", seconds)));
    std::vector<RunningCommand> running;
    for (int i = 0; i < 9; ++i) {
      auto one = sandbox->Start(Shell(fmt::format("sleep {} & setsid sleep {} & wait", seconds, seconds)));
      if (!one) ::_exit(1);
      running.push_back(std::move(*one));
    }
    ::pause();
    ::_exit(0);
  }
  constexpr std::size_t kAll = 19;
  EXPECT_TRUE(Eventually([&] { return WithArgument(seconds).size() == kAll; })) << WithArgument(seconds).size();
  ASSERT_EQ(::kill(owner, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(owner, &status, 0), owner);
  EXPECT_TRUE(WIFSIGNALED(status)) << "it could not open a sandbox";
  EXPECT_TRUE(Eventually([&] { return WithArgument(seconds).empty(); }));
}

}  // namespace
}  // namespace belljar
