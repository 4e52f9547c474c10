// Live sandboxes: many commands in one, one after the other and at once.
#include <belljar/engine.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <list>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sys/pipe.h"
#include "sys/processes_in_tests.h"

namespace belljar {
namespace {

using sys::WithArgument;

std::vector<std::string> Shell(std::string script) { return {"/bin/sh", "-c", std::move(script)}; }

// A command that runs beside the test's own; joined before its sandbox is closed.
class Beside {
 public:
  Beside(LiveSandbox& sandbox, std::string script, RunOptions options = {})
      : thread_([this, &sandbox, script = std::move(script), options = std::move(options)] {
          result_ = sandbox.Run(Shell(script), options);
        }) {}
  ~Beside() {
    if (thread_.joinable()) thread_.join();
  }
  const Result& Join() {
    thread_.join();
    return result_.value();
  }

 private:
  Expected<Result> result_;
  std::thread thread_;
};

std::string UniqueSeconds() { return fmt::format("{}.{}", 6000, ::getpid()); }

TEST(LiveSandbox, KeepsItsFilesFromOneCommandToTheNext) {
  auto engine = Engine::Open();
  ASSERT_TRUE(engine);
  auto sandbox = engine->Open(Policy());
  ASSERT_TRUE(sandbox) << sandbox.error().Text();
  const auto first = sandbox->Run(Shell("echo left here > note; echo done"));
  ASSERT_TRUE(first) << first.error().Text();
  EXPECT_EQ(first->out.data, "done\n") << first->message;
  const auto second = sandbox->Run(Shell("cat note; exit 3"));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->out.data, "left here\n") << second->message;
  EXPECT_EQ(second->exit_code, 3);
}

TEST(LiveSandbox, EndsACommandWithAllThatItStartedAndNoOther) {
  auto engine = Engine::Open();
  ASSERT_TRUE(engine);
  auto sandbox = engine->Open(Policy().Wall("600s"));
  ASSERT_TRUE(sandbox) << sandbox.error().Text();
  auto cancel = CancelToken::Make();
  const std::string seconds = UniqueSeconds();
  Beside other(*sandbox, "touch /tmp/beside; while [ ! -e /tmp/go ]; do sleep 0.01; done; echo unhurt");
  Beside ended(*sandbox, fmt::format("setsid sh -c 'touch /tmp/detached; exec sleep {}' & wait", seconds),
               {.cancel = &*cancel});
  const auto both = Shell("while [ ! -e /tmp/beside ] || [ ! -e /tmp/detached ]; do sleep 0.01; done");
  ASSERT_TRUE(sandbox->Run(both)->ok());
  while (WithArgument(seconds).empty()) std::this_thread::yield();  // Until it has its own name.
  cancel->Cancel();
  const Result& cancelled = ended.Join();
  EXPECT_EQ(cancelled.verdict, Verdict::kCancelled) << cancelled.message;
  EXPECT_TRUE(WithArgument(seconds).empty());
  ASSERT_TRUE(sandbox->Run(Shell("touch /tmp/go"))->ok());
  const Result& unhurt = other.Join();
  EXPECT_EQ(unhurt.out.data, "unhurt\n") << unhurt.message;
}

TEST(LiveSandbox, AProgramThatIsNotThereHurtsNobody) {
  auto engine = Engine::Open();
  ASSERT_TRUE(engine);
  auto sandbox = engine->Open(Policy());
  ASSERT_TRUE(sandbox) << sandbox.error().Text();
  const auto missing = sandbox->Run({"/nonexistent"});
  ASSERT_TRUE(missing);
  EXPECT_EQ(ExitStatus(*missing), 127) << missing->message;
  EXPECT_TRUE(sandbox->Run({"/bin/true"})->ok());
}

TEST(LiveSandbox, EachCommandHasItsOwnDeadline) {
  auto engine = Engine::Open();
  ASSERT_TRUE(engine);
  auto sandbox = engine->Open(Policy().Wall("600s"));
  ASSERT_TRUE(sandbox) << sandbox.error().Text();
  for (int i = 0; i < 2; ++i) {
    const auto late = sandbox->Run({"/bin/sleep", "600"}, {.wall_ns = 100'000'000});
    ASSERT_TRUE(late);
    EXPECT_EQ(late->verdict, Verdict::kTimedOut) << late->message;
  }
  EXPECT_TRUE(sandbox->Run({"/bin/true"})->ok());
}

// Four are hostile to all that they find. Outside the same words end their neighbour.
TEST(LiveSandbox, OfTwentyCommandsFourHurtNoOther) {
  auto engine = Engine::Open();
  ASSERT_TRUE(engine);
  auto sandbox = engine->Open(Policy().Wall("600s"));
  ASSERT_TRUE(sandbox) << sandbox.error().Text();
  auto release = sys::MakePipe("make a pipe");
  ASSERT_TRUE(release);
  constexpr int kPeaceful = 16;
  std::list<Beside> peaceful;
  for (int i = 0; i < kPeaceful; ++i) {
    peaceful.emplace_back(*sandbox, fmt::format("touch /tmp/ready.{}; read never; echo unhurt {}", i, i),
                          RunOptions{.descriptors = {.in = release->read.get()}});
  }
  const auto all = Shell(fmt::format("while [ $(ls /tmp | grep -c ready) -lt {} ]; do sleep 0.01; done", kPeaceful));
  ASSERT_TRUE(sandbox->Run(all)->ok());

  // The numbers may be hidden; those that a stopped or killed process could have are tried anyway.
  const std::string numbers = "p=1; while [ $p -lt 200 ]; do [ $p = $$ ] || { ";
  const std::string next = "; }; p=$((p + 1)); done 2>/dev/null; ";
  Beside killer(*sandbox, numbers + "kill -KILL $p && echo $p" + next + "kill -KILL -1; echo tried");
  Beside stopper(*sandbox, numbers + "kill -STOP $p && echo $p" + next + "kill -STOP -1; echo tried");
  Beside reader(*sandbox, numbers + "cat /proc/$p/environ /proc/$p/maps" + next + "echo tried");
  Beside writer(*sandbox, numbers +
                              "for f in oom_score_adj autogroup coredump_filter timerslack_ns clear_refs comm; do "
                              "echo 1 > /proc/$p/$f && echo $p $f; done" +
                              next + "echo tried");
  for (Beside* hostile : {&killer, &stopper, &reader, &writer}) {
    const Result& result = hostile->Join();
    EXPECT_EQ(result.out.data, "tried\n") << result.message << result.err.data;
  }
  EXPECT_TRUE(sandbox->Run({"/bin/true"})->ok()) << "whose process was among them";
  release->write.Reset();
  int number = 0;
  for (Beside& one : peaceful) {
    const Result& result = one.Join();
    EXPECT_EQ(result.out.data, fmt::format("unhurt {}\n", number++)) << result.message;
    EXPECT_EQ(result.verdict, Verdict::kExited);
  }

  const pid_t neighbour = ::fork();
  if (neighbour == 0) {
    ::pause();
    ::_exit(0);
  }
  ASSERT_EQ(std::system(fmt::format("kill -KILL {}", neighbour).c_str()), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(neighbour, &status, 0), neighbour);
  EXPECT_TRUE(WIFSIGNALED(status));
}

// A command's parent is its steward, whose parent is init.
class LiveSandboxKilled : public testing::TestWithParam<int> {};

TEST_P(LiveSandboxKilled, EndsWithAllItsCommands) {
  auto engine = Engine::Open();
  ASSERT_TRUE(engine);
  auto sandbox = engine->Open(Policy().Wall("600s"));
  ASSERT_TRUE(sandbox) << sandbox.error().Text();
  const std::string seconds = UniqueSeconds();
  constexpr std::size_t kPeaceful = 17;
  std::list<Beside> commands;
  for (std::size_t i = 0; i < kPeaceful; ++i) commands.emplace_back(*sandbox, "exec sleep " + seconds);
  std::vector<pid_t> running;
  while ((running = WithArgument(seconds)).size() < kPeaceful) std::this_thread::yield();
  for (const char* signal : {"KILL", "STOP", "TERM"}) {
    commands.emplace_back(*sandbox, fmt::format("touch /tmp/{0}; while :; do kill -{0} -1; done 2>/dev/null", signal));
  }
  const auto hostile = Shell("while ! [ -e /tmp/KILL -a -e /tmp/STOP -a -e /tmp/TERM ]; do sleep 0.01; done");
  ASSERT_TRUE(sandbox->Run(hostile)->ok());
  pid_t victim = running[0];
  for (int i = 0; i < GetParam(); ++i) victim = sys::ParentInTests(victim);
  ASSERT_GT(victim, 1);
  ASSERT_EQ(::kill(victim, SIGKILL), 0);
  for (Beside& command : commands) {
    const Result& result = command.Join();
    EXPECT_EQ(result.verdict, Verdict::kFailed) << result.message;
    EXPECT_FALSE(result.message.empty());
  }
  EXPECT_TRUE(WithArgument(seconds).empty());
  EXPECT_EQ(sandbox->Run({"/bin/true"})->verdict, Verdict::kFailed);
}

INSTANTIATE_TEST_SUITE_P(Steward, LiveSandboxKilled, testing::Values(1));
INSTANTIATE_TEST_SUITE_P(Init, LiveSandboxKilled, testing::Values(2));
INSTANTIATE_TEST_SUITE_P(Launcher, LiveSandboxKilled, testing::Values(3));

TEST(LiveSandbox, ClosedItEndsWhatRunsAndTakesNoMore) {
  auto engine = Engine::Open();
  ASSERT_TRUE(engine);
  auto sandbox = engine->Open(Policy().Wall("600s"));
  ASSERT_TRUE(sandbox) << sandbox.error().Text();
  Beside runs(*sandbox, "touch /tmp/runs; exec sleep 600");
  ASSERT_TRUE(sandbox->Run(Shell("while [ ! -e /tmp/runs ]; do sleep 0.01; done"))->ok());
  sandbox->Close();
  const Result& running = runs.Join();
  EXPECT_EQ(running.verdict, Verdict::kCancelled) << running.message;
  const auto late = sandbox->Run({"/bin/true"});
  ASSERT_TRUE(late);
  EXPECT_EQ(late->verdict, Verdict::kCancelled) << late->message;
}

// As editors and git do: with another file in its place the kernel takes the cover away.
TEST(LiveSandbox, EndsWhenTheHostTakesACoverAway) {
  char path[] = "/tmp/belljar-test-XXXXXX";
  ASSERT_NE(::mkdtemp(path), nullptr);
  const std::filesystem::path project(path);
  std::ofstream(project / ".envrc") << "mine";
  std::ofstream(project / "fresh") << "new";
  auto engine = Engine::Open();
  ASSERT_TRUE(engine);
  auto sandbox = engine->Open(Policy().Wall("600s").ReadWrite(project, "/workspace"));
  ASSERT_TRUE(sandbox) << sandbox.error().Text();
  Beside runs(*sandbox, "touch /tmp/runs; exec sleep 600");
  ASSERT_TRUE(sandbox->Run(Shell("while [ ! -e /tmp/runs ]; do sleep 0.01; done"))->ok());
  std::filesystem::rename(project / "fresh", project / ".envrc");
  EXPECT_EQ(runs.Join().verdict, Verdict::kFailed);
  const auto late = sandbox->Run({"/bin/true"});
  ASSERT_TRUE(late);
  EXPECT_EQ(late->verdict, Verdict::kFailed);
  EXPECT_NE(late->message.find("takes its cover away"), std::string::npos) << late->message;
  std::filesystem::remove_all(project);
}

// Moved away, its cover goes along, and nobody is told. A command that has used that does not get away with it by
// ending before somebody looks.
TEST(LiveSandbox, ACommandCanNotUseALostCoverAndEnd) {
  char path[] = "/tmp/belljar-test-XXXXXX";
  ASSERT_NE(::mkdtemp(path), nullptr);
  const std::filesystem::path project(path);
  std::ofstream(project / ".envrc") << "mine";
  auto engine = Engine::Open();
  ASSERT_TRUE(engine);
  auto sandbox = engine->Open(Policy().Wall("600s").ReadWrite(project, "/workspace"));
  ASSERT_TRUE(sandbox) << sandbox.error().Text();
  auto waiting =
      sandbox->Start(Shell("touch /tmp/runs; until echo theirs > /workspace/.envrc; do :; done 2> /dev/null"));
  ASSERT_TRUE(waiting);
  ASSERT_TRUE(sandbox->Run(Shell("while [ ! -e /tmp/runs ]; do sleep 0.01; done"))->ok());
  std::filesystem::rename(project / ".envrc", project / "backup");
  EXPECT_EQ(waiting->Wait().verdict, Verdict::kFailed);
  EXPECT_NE(waiting->Wait().message.find("/workspace/.envrc"), std::string::npos) << waiting->Wait().message;
  // Init may have looked first.
  const bool written = std::filesystem::exists(project / ".envrc");
  EXPECT_EQ(waiting->Wait().appeared,
            written ? std::vector<std::string>{"/workspace/.envrc"} : std::vector<std::string>{});
  EXPECT_EQ(sandbox->Run({"/bin/true"})->verdict, Verdict::kFailed);
  std::filesystem::remove_all(project);
}

// Nobody's result tells of what is made when no command runs.
TEST(LiveSandbox, WhatTheBackgroundLeavesIsTold) {
  using Names = std::vector<std::string>;
  char path[] = "/tmp/belljar-test-XXXXXX";
  ASSERT_NE(::mkdtemp(path), nullptr);
  const std::filesystem::path project(path);
  auto engine = Engine::Open();
  ASSERT_TRUE(engine);
  auto sandbox = engine->Open(Policy().Wall("600s").ReadWrite(project, "/workspace").Set("background", "keep"));
  ASSERT_TRUE(sandbox) << sandbox.error().Text();
  const auto later =
      sandbox->Run(Shell("(until [ -e go ]; do sleep 0.01; done; echo x > .envrc; rm go) > /dev/null 2>&1 &"));
  ASSERT_TRUE(later);
  EXPECT_EQ(later->appeared, Names{});
  std::ofstream(project / "go") << "x";
  while (std::filesystem::exists(project / "go")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(sandbox->Appeared(), Names{"/workspace/.envrc"});
  EXPECT_EQ(sandbox->Appeared(), Names{}) << "once";
  // Taken away and made again it is another trap.
  std::filesystem::remove(project / ".envrc");
  EXPECT_EQ(sandbox->Run(Shell("true"))->appeared, Names{});
  EXPECT_EQ(sandbox->Run(Shell("echo y > .envrc"))->appeared, Names{"/workspace/.envrc"});
  // After the last command there is nobody else's result.
  ASSERT_TRUE(
      sandbox->Run(Shell("(until [ -e go ]; do sleep 0.01; done; echo x > .profile; sleep 600) > /dev/null 2>&1 &")));
  std::ofstream(project / "go") << "x";
  while (!std::filesystem::exists(project / ".profile")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  sandbox->Close();
  EXPECT_EQ(sandbox->Appeared(), Names{"/workspace/.profile"});
  std::filesystem::remove_all(project);
}

TEST(LiveSandbox, RefusesWhatItsCommandsCannotHave) {
  auto engine = Engine::Open();
  ASSERT_TRUE(engine);
  auto sandbox = engine->Open(Policy());
  ASSERT_TRUE(sandbox) << sandbox.error().Text();
  EXPECT_FALSE(sandbox->Run({"/bin/true"}, {.trace = Trace::kRefusals}));
  EXPECT_FALSE(sandbox->Run({}));
}

}  // namespace
}  // namespace belljar
