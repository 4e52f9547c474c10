// Sandboxes made ahead: the same results as others, each used once, and nothing left of them.
#include <belljar/engine.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include "backend/pool.h"
#include "plan/compile.h"
#include "sys/host_facts.h"

namespace belljar {
namespace {

using Clock = std::chrono::steady_clock;

// Children of a process, all threads' together. None when it is gone.
std::set<int> ChildrenOf(const std::string& process) {
  std::set<int> pids;
  DIR* tasks = ::opendir(("/proc/" + process + "/task").c_str());
  if (tasks == nullptr) return pids;
  while (const dirent* entry = ::readdir(tasks)) {
    std::ifstream list("/proc/" + process + "/task/" + entry->d_name + "/children");
    pids.insert(std::istream_iterator<int>(list), {});
  }
  ::closedir(tasks);
  return pids;
}

std::size_t Children() { return ChildrenOf("self").size(); }

// Whether a process still runs; one that only waits to be reaped does not.
bool Runs(int pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(status, line)) return false;
  const std::size_t state = line.rfind(") ") + 2;  // The name before it may be anything.
  return state < line.size() && line[state] != 'Z' && line[state] != 'X';
}

// Whether any process of the host has `word` among its arguments.
bool Named(const std::string& word) {
  bool found = false;
  DIR* processes = ::opendir("/proc");
  while (const dirent* entry = ::readdir(processes)) {
    std::ifstream arguments(std::string("/proc/") + entry->d_name + "/cmdline");
    const std::string text(std::istreambuf_iterator<char>(arguments), {});
    found = found || text.find(word) != std::string::npos;
  }
  ::closedir(processes);
  return found;
}

// Waits for a state, not for a time: the bound is one that no load explains.
template <typename Condition>
bool WaitUntil(Condition condition) {
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

class Warm : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Engine::Open({.warm = 3});
    ASSERT_TRUE(opened);
    engine_.emplace(std::move(*opened));
    const auto ready = engine_->Prepare({}, 1);
    // Where user namespaces are forbidden nothing can be made ahead, and the engine says so.
    if (!ready) GTEST_SKIP() << ready.error().Text();
  }
  Result Run(const std::vector<std::string>& argv, const Policy& policy = {}, const RunOptions& options = {}) {
    EXPECT_TRUE(engine_->Prepare(policy, 1));
    auto result = engine_->Run(policy, argv, options);
    EXPECT_TRUE(result) << result.error().Text();
    return result ? std::move(*result) : Result{};
  }
  std::optional<Engine> engine_;
};

TEST_F(Warm, TellsTheSameAsACold) {
  auto cold = Engine::Open();
  ASSERT_TRUE(cold);
  const std::vector<std::string> argv = {"/bin/sh", "-c", "cat; echo err >&2; pwd; id -u; echo $A; ls /; exit 3"};
  const Policy policy = Policy().Env("A", "b");
  RunOptions options = Stdin("in ");
  const Result warm = Run(argv, policy, options);
  const auto other = cold->Run(policy, argv, options);
  ASSERT_TRUE(other);
  EXPECT_EQ(warm.verdict, Verdict::kExited) << warm.message;
  EXPECT_EQ(warm.exit_code, 3);
  EXPECT_EQ(warm.out.data, other->out.data);
  EXPECT_EQ(warm.err.data, other->err.data);
  ASSERT_EQ(warm.receipt.guards.size(), other->receipt.guards.size());
  for (std::size_t i = 0; i < warm.receipt.guards.size(); ++i) {
    EXPECT_EQ(warm.receipt.guards[i].state, other->receipt.guards[i].state) << warm.receipt.guards[i].guard;
  }
}

TEST_F(Warm, IsUsedOnce) {
  for (int i = 0; i < 4; ++i) {
    const Result result =
        Run({"/bin/sh", "-c", "ls -A /workspace /tmp/home; echo $$; echo x > /workspace/x; hostname"});
    EXPECT_EQ(result.out.data, "/tmp/home:\n\n/workspace:\n2\nbelljar\n") << result.err.data;
  }
}

// Its streams pass through a process that waits for it, and are more descriptors than it may have.
TEST_F(Warm, HasItsLimitOfDescriptors) {
  const Result result = Run({"/bin/sh", "-c", "ulimit -n; cat"}, Policy().OpenFiles("5"), Stdin("in"));
  EXPECT_EQ(result.out.data, "5\nin") << result.message << result.err.data;
}

TEST_F(Warm, VerdictsAreTheSame) {
  EXPECT_EQ(Run({"sleep", "60"}, Policy().Wall("100ms")).verdict, Verdict::kTimedOut);
  EXPECT_EQ(Run({"no-such-program"}).exit_code, 127);
  EXPECT_EQ(Run({"/etc/passwd"}).exit_code, 126);
  const Result killed = Run({"/bin/sh", "-c", "kill -9 $$"});
  EXPECT_EQ(killed.verdict, Verdict::kSignaled);
  EXPECT_EQ(killed.signal, 9);
  const Result denied = Run({"/usr/bin/unshare", "--user", "true"});
  EXPECT_NE(std::ranges::find(denied.denials, "unshare", &Denial::operation), denied.denials.end());
  EXPECT_EQ(Run({"/bin/sh", "-c", "yes > /workspace/f; exit 1"}, Policy().Disk("1M")).verdict, Verdict::kDiskLimit);
}

TEST_F(Warm, BackgroundChildrenAreGoneWhenItReturns) {
  char path[] = "/tmp/belljar-test-XXXXXX";
  ASSERT_NE(::mkdtemp(path), nullptr);
  const std::string word = std::string(path) + "-guest";
  const Policy policy = Policy().ReadWrite(path, "/workspace");
  const Result result =
      Run({"/bin/sh", "-c", "(while :; do echo >> beat; done) & until [ -s beat ]; do :; done", word}, policy);
  const std::string file = std::string(path) + "/beat";
  struct stat before{};
  struct stat after{};
  ASSERT_EQ(::stat(file.c_str(), &before), 0);
  EXPECT_FALSE(Named(word));
  ASSERT_EQ(::stat(file.c_str(), &after), 0);
  EXPECT_TRUE(result.ok()) << result.message;
  EXPECT_GT(before.st_size, 0);
  EXPECT_EQ(before.st_size, after.st_size);
  ::unlink(file.c_str());
  ::rmdir(path);
}

TEST_F(Warm, AReplacedDirectoryIsSeen) {
  char path[] = "/tmp/belljar-test-XXXXXX";
  ASSERT_NE(::mkdtemp(path), nullptr);
  const std::string data = std::string(path) + "/data";
  const std::string old = std::string(path) + "/old";
  ASSERT_EQ(::mkdir(data.c_str(), 0755), 0);
  const Policy policy = Policy().ReadOnly(data, "/data");
  ASSERT_TRUE(engine_->Prepare(policy, 1));
  ASSERT_EQ(::rename(data.c_str(), old.c_str()), 0);
  ASSERT_EQ(::mkdir(data.c_str(), 0755), 0);
  std::ofstream(data + "/new") << "new";
  const auto result = engine_->Run(policy, {"/bin/cat", "/data/new"});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->out.data, "new");
  ::unlink((data + "/new").c_str());
  for (const std::string& directory : {data, old, std::string(path)}) ::rmdir(directory.c_str());
}

TEST_F(Warm, WhatAPatternHidesIsThatOfTheRun) {
  char path[] = "/tmp/belljar-test-XXXXXX";
  ASSERT_NE(::mkdtemp(path), nullptr);
  const Policy policy = Policy().ReadOnly(path, "/data").Set("files.hide", "/data/*.pem");
  EXPECT_EQ(Run({"/bin/cat", "/data/key.pem"}, policy).exit_code, 1);
  ASSERT_TRUE(engine_->Prepare(policy, 1));
  const std::string key = std::string(path) + "/key.pem";
  std::ofstream(key) << "SECRET";
  const auto result = engine_->Run(policy, {"/bin/cat", "/data/key.pem"});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->out.data, "") << "made after the sandbox was";
  const auto control = engine_->Run(Policy().ReadOnly(path, "/data"), {"/bin/cat", "/data/key.pem"});
  ASSERT_TRUE(control);
  EXPECT_EQ(control->out.data, "SECRET");
  ::unlink(key.c_str());
  ::rmdir(path);
}

// What ~ stands for in git's configuration the pool does not know, which is each caller's own.
TEST_F(Warm, TheHomeOfItsCallerCounts) {
  char path[] = "/tmp/belljar-test-XXXXXX";
  ASSERT_NE(::mkdtemp(path), nullptr);
  const std::filesystem::path project(path);
  std::filesystem::create_directories(project / ".git");
  std::ofstream(project / ".git/config") << "[include]\npath = ~/shared\n";
  std::ofstream(project / "shared") << "";
  const Policy policy = Policy().ReadWrite(project, "/workspace");
  ASSERT_TRUE(engine_->Prepare(policy, 1));
  const std::vector<std::string> write = {"/bin/sh", "-c", "echo x > shared"};
  Caller caller = Caller::OfThisProcess();
  caller.Set("HOME", "/elsewhere");
  EXPECT_EQ(engine_->Run(policy, write, {.caller = caller})->exit_code, 0) << "the control";
  ASSERT_TRUE(engine_->Prepare(policy, 1));
  caller.Set("HOME", project.native());
  EXPECT_EQ(engine_->Run(policy, write, {.caller = caller})->exit_code, 2);
  std::filesystem::remove_all(project);
}

TEST_F(Warm, OneThatDiedIsReplacedByACold) {
  const std::size_t before = Children();
  ASSERT_GT(before, 0U);
  // All our children are prepared sandboxes and their janitors; what runs in them can't be told apart, so all must go.
  const std::set<int> pids = ChildrenOf("self");
  std::set<int> family = pids;
  for (const int pid : pids) family.merge(ChildrenOf(std::to_string(pid)));
  for (const int pid : pids) ::kill(pid, SIGKILL);
  ASSERT_TRUE(WaitUntil([&] { return std::ranges::none_of(family, Runs); }));
  const auto result = engine_->Run({}, {"/bin/echo", "alive"});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->out.data, "alive\n") << result->message;
}

TEST_F(Warm, NothingIsLeftOfAnEngine) {
  ASSERT_TRUE(engine_->Prepare({}, 3));
  EXPECT_GT(Children(), 0U);
  engine_.reset();
  EXPECT_EQ(Children(), 0U);
}

TEST_F(Warm, ManyThreadsAtOnce) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "init is a clone of a program with threads, in which ThreadSanitizer's own locks may stay taken";
#endif
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 12; ++i) {
        const std::string word = std::to_string(t) + "-" + std::to_string(i);
        // Two shapes, so that they compete for the pool.
        const Policy policy = i % 2 == 0 ? Policy() : Policy().Memory("256M");
        const auto result = engine_->Run(policy, {"/bin/echo", word});
        if (result && result->ok() && result->out.data == word + "\n") ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 48);
}

// A full pool once made whoever asked for another shape wait until all was forgotten, and then said that it was ready.
TEST(Pool, MakesRoomForWhatIsAskedFor) {
  const sys::HostFacts facts = sys::ReadHostFacts();
  backend::Pool pool(2);
  const Policy first;
  const Policy second = Policy().Memory("256M");
  if (const auto ready = pool.Fill(first, facts, 2); !ready) GTEST_SKIP() << ready.error().Text();
  ASSERT_TRUE(pool.Fill(second, facts, 2));
  for (int i = 0; i < 2; ++i) EXPECT_NE(pool.Take(second, facts, ""), nullptr);
}

TEST(Pool, TwoWhoWantAllOfItBothGetIt) {
  const sys::HostFacts facts = sys::ReadHostFacts();
  backend::Pool pool(2);
  if (const auto ready = pool.Fill({}, facts, 1); !ready) GTEST_SKIP() << ready.error().Text();
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (const char* memory : {"128M", "256M", "384M"}) {
    threads.emplace_back([&, memory] { good += pool.Fill(Policy().Memory(memory), facts, 2) ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 3);
}

TEST(Pool, AFailureThatPassesIsForgotten) {
  const sys::HostFacts facts = sys::ReadHostFacts();
  backend::Pool pool(2);  // One is kept ready for the first.
  if (const auto ready = pool.Fill({}, facts, 1); !ready) GTEST_SKIP() << ready.error().Text();
  const Policy hot = Policy().Memory("256M");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{3, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto failed = pool.Fill(hot, facts, 1);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(failed);
  EXPECT_TRUE(WaitUntil([&] { return pool.Take(hot, facts, "") != nullptr; }));
}

TEST(Prepare, NamesTheStepThatFailed) {
  char path[] = "/tmp/belljar-test-XXXXXX";
  ASSERT_NE(::mkdtemp(path), nullptr);
  const sys::HostFacts facts = sys::ReadHostFacts();
  const Policy policy = Policy().ReadOnly(path, "/data");
  const auto plan = plan::Compile({.policy = policy,
                                   .facts = facts,
                                   .caller = {},
                                   .argv = {},
                                   .command = plan::CommandKnown::kLater,
                                   .run_id = sys::MakeRunId()});
  ASSERT_TRUE(plan);
  ASSERT_EQ(::rmdir(path), 0);
  const auto prepared = launch::Sandbox::Prepare(*plan, {.cgroups = facts.cgroups});
  ASSERT_FALSE(prepared);
  if (prepared.error().step == "clone init") GTEST_SKIP() << prepared.error().Text();
  EXPECT_NE(prepared.error().Text().find("/data"), std::string::npos) << prepared.error().Text();
  EXPECT_EQ(prepared.error().code, ENOENT);
}

TEST(Cold, SaysThatItKeepsNoneReady) {
  auto engine = Engine::Open();
  ASSERT_TRUE(engine);
  const auto prepared = engine->Prepare({}, 1);
  ASSERT_FALSE(prepared);
  EXPECT_NE(prepared.error().Text().find("warm"), std::string::npos);
}

}  // namespace
}  // namespace belljar
