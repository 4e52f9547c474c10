#include <belljar/engine.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace belljar {
namespace {

Result RunOnce(const Policy& policy, const std::vector<std::string>& argv, const RunOptions& options = {}) {
  auto engine = Engine::Open();
  EXPECT_TRUE(engine);
  auto result = engine->Run(policy, argv, options);
  EXPECT_TRUE(result) << result.error().Text();
  return result ? std::move(*result) : Result{};
}

TEST(Engine, RunsAtBothLevels) {
  for (const char* level : {"process", "kernel"}) {
    const Result result = RunOnce(Policy().AtLevel(level), {"/bin/sh", "-c", "echo out; echo err >&2; exit 3"});
    EXPECT_EQ(result.verdict, Verdict::kExited) << result.message;
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(result.out.data, "out\n");
    EXPECT_EQ(result.err.data, "err\n");
    EXPECT_EQ(Name(result.receipt.level), level);
    EXPECT_FALSE(result.receipt.guards.empty());
  }
}

TEST(Engine, FeedsStandardInput) {
  EXPECT_EQ(RunOnce({}, {"cat"}, Stdin("hello")).out.data, "hello");
  EXPECT_EQ(RunOnce({}, {"cat"}).out.data, "");
  // A guest that never reads does not hold the run.
  EXPECT_TRUE(RunOnce({}, {"/bin/true"}, Stdin(std::string(1 << 20, 'x'))).ok());
}

// A host program with a signal handler of its own: whatever is interrupted goes on. The guest fills both pipes and
// ends, and only then somebody reads.
TEST(Engine, SignalsOfTheHostProgramLoseNoOutput) {
  struct Shared {
    std::atomic<int> ticks;
  };
  auto* const shared =
      static_cast<Shared*>(::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(shared, MAP_FAILED);
  static Shared* seen = shared;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const int capacity = ::fcntl(ends[0], F_GETPIPE_SZ);
  char path[] = "/tmp/belljar-test-XXXXXX";
  ASSERT_NE(::mkdtemp(path), nullptr);
  const pid_t host = ::fork();
  if (host == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    struct sigaction action{};
    action.sa_handler = [](int) { ++seen->ticks; };
    ::sigaction(SIGALRM, &action, nullptr);
    const itimerval often{{0, 2000}, {0, 2000}};
    ::setitimer(ITIMER_REAL, &often, nullptr);
    RunOptions options;
    options.streams = StreamMode::kPassThrough;
    options.descriptors = kStandardStreams;
    const std::string script = "head -c " + std::to_string(2 * capacity) + " /dev/zero; echo > done";
    (void)RunOnce(Policy().ReadWrite(path, "/workspace"), {"/bin/sh", "-c", script}, options);
    ::_exit(0);
  }
  ::close(ends[1]);
  const std::string done = std::string(path) + "/done";
  const auto wait = [](auto condition) {
    for (int i = 0; i < 60'000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  wait([&] { return ::access(done.c_str(), F_OK) == 0; });
  // It has written all, and is about to end: some interruptions later that is drained which it left in its pipe.
  const int before = shared->ticks;
  wait([&] { return shared->ticks > before + 50; });
  std::vector<char> chunk(65'536);
  std::int64_t total = 0;
  ssize_t got = 0;
  while ((got = ::read(ends[0], chunk.data(), chunk.size())) > 0) total += got;
  EXPECT_EQ(total, 2 * capacity);
  ::close(ends[0]);
  EXPECT_EQ(::waitpid(host, nullptr, 0), host);
  EXPECT_EQ(::unlink(done.c_str()), 0);
  ::rmdir(path);
  ::munmap(shared, sizeof(Shared));
}

// Nothing of ours may take the numbers of streams that are closed: the command's own would replace it.
TEST(Engine, CapturesInAHostProgramWithoutStreams) {
  for (const char* level : {"process", "kernel"}) {
    const pid_t host = ::fork();
    if (host == 0) {
      for (int fd = 0; fd <= 2; ++fd) ::close(fd);
      auto engine = Engine::Open();
      const auto result = engine->Run(Policy().AtLevel(level), {"/bin/sh", "-c", "cat; echo err >&2"}, Stdin("in"));
      ::_exit(result && result->ok() && result->out.data == "in" && result->err.data == "err\n" ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(host, &status, 0), host);
    EXPECT_EQ(status, 0) << level;
  }
}

TEST(Engine, CallersMistakesAreErrors) {
  auto engine = Engine::Open();
  ASSERT_TRUE(engine);
  EXPECT_FALSE(engine->Run({}, {}));
  EXPECT_FALSE(engine->Run(Policy().Memory("12 parsecs"), {"/bin/true"}));
  EXPECT_FALSE(engine->Run(Policy::Profile("no-such-profile"), {"/bin/true"}));
  EXPECT_FALSE(engine->Run(Policy().ReadOnly("/no/such/place"), {"/bin/true"}));
}

TEST(Engine, CancelEndsTheRun) {
  auto token = CancelToken::Make();
  ASSERT_TRUE(token);
  char path[] = "/tmp/belljar-test-XXXXXX";
  ASSERT_NE(::mkdtemp(path), nullptr);
  const std::string ready = std::string(path) + "/ready";
  std::thread other([&] {
    for (int i = 0; i < 60'000 && ::access(ready.c_str(), F_OK) != 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    token->Cancel();
  });
  RunOptions options;
  options.cancel = &*token;
  const Result result =
      RunOnce(Policy().ReadWrite(path, "/workspace"), {"/bin/sh", "-c", "echo > ready; exec sleep 600"}, options);
  other.join();
  EXPECT_EQ(result.verdict, Verdict::kCancelled);
  EXPECT_EQ(::unlink(ready.c_str()), 0);
  ::rmdir(path);
}

TEST(Engine, DeadlineNamesItsLimit) {
  const Result result = RunOnce(Policy().Wall("100ms"), {"sleep", "60"});
  EXPECT_EQ(result.verdict, Verdict::kTimedOut);
  EXPECT_NE(result.message.find("--wall"), std::string::npos);
}

TEST(Engine, RefusedCallsAreDenials) {
  const Result result = RunOnce({}, {"/usr/bin/unshare", "--user", "true"});
  const auto denial = std::ranges::find(result.denials, "unshare", &Denial::operation);
  ASSERT_NE(denial, result.denials.end());
  EXPECT_EQ(denial->kind, "syscall");
  EXPECT_GE(denial->count, 1U);
}

// One engine, many threads: each run is its own sandbox, and nobody gets another's output.
TEST(Engine, ManyThreadsAtOnce) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "init is a clone of a program with threads, in which ThreadSanitizer's own locks may stay taken";
#endif
  auto engine = Engine::Open();
  ASSERT_TRUE(engine);
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  constexpr int kThreads = 6;
  constexpr int kRuns = 8;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRuns; ++i) {
        const std::string word = std::to_string(t) + "-" + std::to_string(i);
        const auto result = engine->Run({}, {"/bin/echo", word});
        if (result && result->ok() && result->out.data == word + "\n") ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, kThreads * kRuns);
}

TEST(Engine, WritableMountIsUsableOnBothSides) {
  char path[] = "/tmp/belljar-test-XXXXXX";
  ASSERT_NE(::mkdtemp(path), nullptr);
  const Result result =
      RunOnce(Policy().ReadWrite(path, "/workspace"), {"/bin/sh", "-c", "echo inside > file && ls -ln file"});
  EXPECT_TRUE(result.ok()) << result.err.data << result.message;
  struct stat status{};
  const std::string file = std::string(path) + "/file";
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, ::geteuid()) << "what the guest writes belongs to the owner of the directory";
  ::unlink(file.c_str());
  ::rmdir(path);
}

TEST(Engine, StreamsToTheDescriptorsThatItIsGiven) {
  int out[2];
  int err[2];
  ASSERT_EQ(::pipe2(out, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(err, O_CLOEXEC), 0);
  RunOptions options = Stdin("in");
  options.streams = StreamMode::kPassThrough;
  EXPECT_FALSE(Engine::Open()->Run({}, {"/bin/true"}, options)) << "this process's own are nobody's default";
  options.descriptors = {.out = out[1], .err = err[1]};
  const Result result = RunOnce({}, {"/bin/sh", "-c", "cat; echo err >&2"}, options);
  EXPECT_TRUE(result.ok()) << result.message;
  char text[16] = {};
  EXPECT_EQ(::read(out[0], text, sizeof text), 2);
  EXPECT_STREQ(text, "in");
  EXPECT_EQ(::read(err[0], text, sizeof text), 4);
  for (const int fd : {out[0], out[1], err[0], err[1]}) ::close(fd);
}

TEST(Engine, RunsForAnotherCaller) {
  char path[] = "/var/tmp/belljar-test-XXXXXX";
  ASSERT_NE(::mkdtemp(path), nullptr);
  const std::string tool = std::string(path) + "/tool";
  std::ofstream(tool) << "#!/bin/sh\necho $WORD $OTHER\n";
  ASSERT_EQ(::chmod(tool.c_str(), 0755), 0);
  ::setenv("OTHER", "this process's", 1);
  RunOptions options;
  options.caller = Caller{.directory = path, .environment = {"WORD=theirs", "PATH=/bin"}};
  const Policy policy = Policy().PassEnv("WORD").PassEnv("OTHER");
  EXPECT_EQ(RunOnce(policy, {"./tool"}, options).out.data, "theirs\n");
  EXPECT_EQ(RunOnce(policy, {"tool"}, options).exit_code, 127);
  options.caller->Set("PATH", path);
  EXPECT_EQ(RunOnce(policy, {"tool"}, options).out.data, "theirs\n");
  ::unlink(tool.c_str());
  ::rmdir(path);
}

TEST(Engine, ExplainNeedsNoRun) {
  auto engine = Engine::Open();
  ASSERT_TRUE(engine);
  const auto text = engine->Explain({}, {"/bin/true"});
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("seccomp"), std::string::npos);
}

}  // namespace
}  // namespace belljar
