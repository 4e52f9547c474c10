// What every backend has to do alike. Each test runs once with each of them; what one can't do it refuses by name, and
// that is tested too.
#include <belljar/engine.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sys/pipe.h"
#include "sys/processes_in_tests.h"

namespace belljar {
namespace {

using sys::Eventually;
using sys::WithArgument;

struct Native {
  static constexpr char kName[] = "native";
  static bool Writes() { return true; }
  static bool HasTerminals() { return true; }
};
struct Bwrap {
  static constexpr char kName[] = "bwrap";
  static bool Writes() { return ::geteuid() != 0; }  // As root it can't map the owner of a mount.
  static bool HasTerminals() { return false; }
};

std::vector<std::string> Shell(std::string script) { return {"/bin/sh", "-c", std::move(script)}; }

template <typename Kind>
class Backend : public testing::Test {
 protected:
  void SetUp() override {
    auto engine = Engine::Open({.backend = Kind::kName});
    ASSERT_TRUE(engine) << engine.error().Text();
    engine_.emplace(std::move(*engine));
    std::string path = "/tmp/belljar-backends-XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    directory_ = path;
    std::filesystem::permissions(directory_, std::filesystem::perms(0755));
    std::ofstream(directory_ / "note") << "of the host\n";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  Result Run(const Policy& policy, const std::vector<std::string>& argv, const RunOptions& options = {}) {
    auto result = engine_->Run(policy, argv, options);
    EXPECT_TRUE(result) << result.error().Text();
    return result ? std::move(*result) : Result();
  }
  Result Run(std::string script, const RunOptions& options = {}) {
    return Run(Policy().Wall("600s"), Shell(std::move(script)), options);
  }
  LiveSandbox Open(const Policy& policy) {
    auto sandbox = engine_->Open(policy);
    EXPECT_TRUE(sandbox) << sandbox.error().Text();
    return std::move(sandbox.value());
  }
  // No other test, and no other run of this one, sleeps so long.
  static std::string UniqueSeconds() { return fmt::format("{}.{}", 7000, ::getpid()); }

  std::optional<Engine> engine_;
  std::filesystem::path directory_;
};

using Kinds = testing::Types<Native, Bwrap>;
struct Naming {
  template <typename Kind>
  static std::string GetName(int /*index*/) {
    return Kind::kName;
  }
};
TYPED_TEST_SUITE(Backend, Kinds, Naming);

TYPED_TEST(Backend, RunsACommandAndTellsHowItEnded) {
  const Result result = this->Run("echo out; echo err >&2; exit 3");
  EXPECT_EQ(result.verdict, Verdict::kExited) << result.message;
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out.data, "out\n");
  EXPECT_EQ(result.err.data, "err\n");
}

TYPED_TEST(Backend, SaysInItsReceiptWhoMadeTheWalls) {
  const Result result = this->Run("true");
  EXPECT_EQ(result.receipt.backend, TypeParam::kName);
  EXPECT_EQ(result.receipt.level, Level::kKernel);
  const auto assessed = this->engine_->Assess(Policy().Wall("600s"));
  ASSERT_TRUE(assessed) << assessed.error().Text();
  ASSERT_EQ(assessed->guards.size(), result.receipt.guards.size());
  for (std::size_t i = 0; i < assessed->guards.size(); ++i) {
    EXPECT_EQ(assessed->guards[i].guard, result.receipt.guards[i].guard);
    EXPECT_EQ(assessed->guards[i].state, result.receipt.guards[i].state) << assessed->guards[i].guard;
  }
}

TYPED_TEST(Backend, StreamsInputAndOutput) {
  const Result text = this->Run(Policy(), {"/bin/cat"}, Stdin("as text"));
  EXPECT_EQ(text.out.data, "as text");
  auto in = sys::MakePipe("make a pipe");
  auto out = sys::MakePipe("make a pipe");
  ASSERT_TRUE(in && out);
  ASSERT_EQ(::write(in->write.get(), "by pipe", 7), 7);
  in->write.Reset();
  const Result piped = this->Run(
      Policy(), {"/bin/cat"},
      {.streams = StreamMode::kPassThrough, .descriptors = {.in = in->read.get(), .out = out->write.get(), .err = 2}});
  EXPECT_TRUE(piped.ok()) << piped.message;
  char read[16] = {};
  EXPECT_EQ(::read(out->read.get(), read, sizeof read), 7);
  EXPECT_STREQ(read, "by pipe");
  std::string heard;
  const RunOptions listening{.on_output = [&](OutputStream, std::string_view piece) { heard += piece; }};
  EXPECT_TRUE(this->Run("echo piece by piece", listening).ok());
  EXPECT_EQ(heard, "piece by piece\n");
}

TYPED_TEST(Backend, GivesTheCommandItsStreamsAndChannelsAlone) {
  auto channel = sys::MakePipe("make a pipe");
  ASSERT_TRUE(channel);
  const std::string list = "for fd in /proc/self/fd/*; do [ -e $fd ] && echo ${fd##*/}; done";  // No fork, no more fds.
  EXPECT_EQ(this->Run(list).out.data, "0\n1\n2\n");
  const Result given =
      this->Run(list + "; echo through >&7", {.channels = {{.fd = channel->write.get(), .number = 7, .name = "side"}}});
  EXPECT_EQ(given.out.data, "0\n1\n2\n7\n") << given.message;
  char read[16] = {};
  EXPECT_EQ(::read(channel->read.get(), read, sizeof read), 8);
}

TYPED_TEST(Backend, NamesTheLimitThatEndedIt) {
  const auto verdict = [&](Policy policy, const std::string& script) {
    return this->Run(policy.Wall("600s"), Shell(script)).verdict;
  };
  EXPECT_EQ(verdict(Policy().Memory("64M"), "head -c 1G /dev/zero | tail"), Verdict::kOutOfMemory);
  EXPECT_EQ(verdict(Policy().Processes("20"), "exec bash -c 'for i in $(seq 60); do sleep 600 & done; wait'"),
            Verdict::kProcessLimit);
  EXPECT_EQ(verdict(Policy().CpuTime("500ms"), "while :; do :; done"), Verdict::kCpuTime);
  EXPECT_EQ(verdict(Policy().FileSize("1M"), "exec head -c 2M /dev/zero > big"), Verdict::kFileSize);
  EXPECT_EQ(verdict(Policy().Disk("1M"), "exec head -c 2M /dev/zero > big"), Verdict::kDiskLimit);
  const Result late = this->Run(Policy().Wall("100ms"), {"/bin/sleep", "600"});
  EXPECT_EQ(late.verdict, Verdict::kTimedOut) << late.message;
  const Result killed = this->Run("kill -TERM $$");
  EXPECT_EQ(killed.verdict, Verdict::kSignaled);
  EXPECT_EQ(killed.signal, SIGTERM);
  EXPECT_EQ(ExitStatus(this->Run(Policy(), {"/nonexistent"})), 127);
  EXPECT_EQ(ExitStatus(this->Run(Policy(), {"/etc/passwd"})), 126);
}

TYPED_TEST(Backend, EndsAllThatACommandStarted) {
  const std::string seconds = this->UniqueSeconds();
  auto out = sys::MakePipe("make a pipe");
  ASSERT_TRUE(out);
  auto cancel = CancelToken::Make();
  std::thread canceller([&] {
    char byte = 0;
    (void)!::read(out->read.get(), &byte, 1);
    while (WithArgument(seconds).size() < 2) std::this_thread::yield();
    cancel->Cancel();
  });
  const Result result = this->Run(
      fmt::format("setsid sleep {0} & (trap '' TERM; exec sleep {0}) & echo begun; wait", seconds),
      {.streams = StreamMode::kPassThrough, .descriptors = {.out = out->write.get(), .err = 2}, .cancel = &*cancel});
  canceller.join();
  EXPECT_EQ(result.verdict, Verdict::kCancelled) << result.message;
  EXPECT_TRUE(WithArgument(seconds).empty());
  const Result left = this->Run(fmt::format("setsid sleep {} & exit 0", seconds));
  EXPECT_EQ(left.verdict, Verdict::kExited);
  EXPECT_TRUE(WithArgument(seconds).empty());
}

TYPED_TEST(Backend, ShowsWhatIsMountedAndNothingElse) {
  const Policy policy = Policy().ReadOnly(this->directory_, "/data");
  const Result seen = this->Run(policy, Shell("cat /data/note; echo x > /data/note || echo kept; ls -A /home /root "
                                              "/var 2>/dev/null; cat /etc/shadow 2>/dev/null; echo end"));
  EXPECT_EQ(seen.out.data, "of the host\nkept\nend\n") << seen.message << seen.err.data;
  std::filesystem::create_symlink(this->directory_, this->directory_.string() + ".link");
  const auto linked =
      this->engine_->Run(Policy().ReadOnly(this->directory_.string() + ".link", "/data"), {"/bin/true"});
  std::filesystem::remove(this->directory_.string() + ".link");
  EXPECT_FALSE(linked);
}

TYPED_TEST(Backend, WritesWhereItMayOrSaysThatItCanNot) {
  const Policy policy = Policy().ReadWrite(this->directory_, "/workspace");
  std::ofstream(this->directory_ / ".envrc") << "mine\n";
  const Result result = this->Run(policy, Shell("echo theirs > new; echo theirs > .envrc; cat .envrc"));
  if (!TypeParam::Writes()) {
    EXPECT_EQ(result.verdict, Verdict::kRefused);
    EXPECT_NE(result.message.find("can't map the owner"), std::string::npos) << result.message;
    return;
  }
  EXPECT_EQ(result.out.data, "mine\n") << result.message;  // Protected: its owner's tools would execute it.
  std::stringstream written;
  written << std::ifstream(this->directory_ / "new").rdbuf();
  EXPECT_EQ(written.str(), "theirs\n");
  std::ifstream envrc(this->directory_ / ".envrc");
  std::string kept;
  EXPECT_TRUE(std::getline(envrc, kept) && kept == "mine");
}

// As editors and git do: with another file in its place the kernel takes the cover away.
TYPED_TEST(Backend, EndsWhenTheHostTakesACoverAway) {
  if (!TypeParam::Writes()) return;
  std::ofstream(this->directory_ / ".envrc") << "mine";
  std::ofstream(this->directory_ / "fresh") << "new";
  LiveSandbox sandbox = this->Open(Policy().Wall("600s").ReadWrite(this->directory_, "/workspace"));
  auto runs = sandbox.Start({"/bin/sleep", "600"});
  ASSERT_TRUE(runs);
  std::filesystem::rename(this->directory_ / "fresh", this->directory_ / ".envrc");
  EXPECT_EQ(runs->Wait().verdict, Verdict::kFailed);
  EXPECT_NE(runs->Wait().message.find("takes its cover away"), std::string::npos) << runs->Wait().message;
}

TYPED_TEST(Backend, HasNoNetworkButItsOwnLoopback) {
  const Result result = this->Run(Policy(), {"/usr/bin/python3", "-c", R"(
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=lambda: server.accept()[0].sendall(b"inside"), daemon=True).start()
print(socket.create_connection(server.getsockname()).recv(9).decode())
try: socket.create_connection(("192.0.2.1", 80), timeout=5)
except OSError as error: print(error.strerror)
)"});
  EXPECT_EQ(result.out.data, "inside\nNetwork is unreachable\n") << result.message << result.err.data;
}

TYPED_TEST(Backend, TellsWhatWasRefused) {
  const Result result = this->Run("unshare --user true; exit 0");
  ASSERT_FALSE(result.denials.empty());
  EXPECT_EQ(result.denials[0].kind, "syscall");
  EXPECT_EQ(result.denials[0].operation, "unshare");
}

TYPED_TEST(Backend, HasATerminalOrSaysThatItHasNone) {
  auto out = sys::MakePipe("make a pipe");
  auto in = sys::MakePipe("make a pipe");
  ASSERT_TRUE(in && out);
  const Result result = this->Run(
      Policy(), {"/usr/bin/tty"},
      {.streams = StreamMode::kTerminal, .descriptors = {.in = in->read.get(), .out = out->write.get(), .err = -1}});
  if (TypeParam::HasTerminals()) {
    EXPECT_TRUE(result.ok()) << result.message;
  } else {
    EXPECT_EQ(result.verdict, Verdict::kRefused);
    EXPECT_NE(result.message.find("no terminals"), std::string::npos) << result.message;
  }
}

TYPED_TEST(Backend, TakesManyCommandsAtOnceThatDoNotMeet) {
  LiveSandbox sandbox = this->Open(Policy().Wall("600s"));
  ASSERT_TRUE(sandbox.Run(Shell("echo kept > note; mkfifo gate"))->ok());
  EXPECT_EQ(sandbox.Run({"/bin/cat", "note"})->out.data, "kept\n");
  std::vector<RunningCommand> peaceful;
  for (int i = 0; i < 6; ++i) {
    auto one = sandbox.Start(Shell(fmt::format("touch /tmp/ready.{0}; read never < gate; echo unhurt {0}", i)));
    ASSERT_TRUE(one) << one.error().Text();
    peaceful.push_back(std::move(*one));
  }
  ASSERT_TRUE(sandbox.Run(Shell("while [ $(ls /tmp | grep -c ready) -lt 6 ]; do sleep 0.01; done"))->ok());
  const auto hostile =
      sandbox.Run(Shell("p=1; while [ $p -lt 100 ]; do [ $p = $$ ] || { kill -KILL $p && echo $p; "
                        "cat /proc/$p/environ; }; p=$((p + 1)); done 2>/dev/null; kill -KILL -1; "
                        "echo tried"));
  EXPECT_EQ(hostile->out.data, "tried\n") << hostile->message;
  const auto late = sandbox.Run({"/bin/sleep", "600"}, {.wall_ns = 100'000'000});
  EXPECT_EQ(late->verdict, Verdict::kTimedOut) << late->message;
  // Held open, so that none of them is told of an end before its line has come.
  auto gate = sandbox.Start(Shell("exec 3<>gate; for i in 0 1 2 3 4 5; do echo go >&3; done; exec sleep 600"));
  ASSERT_TRUE(gate);
  for (int i = 0; i < 6; ++i) {
    const Result& result = peaceful[static_cast<std::size_t>(i)].Wait();
    EXPECT_EQ(result.out.data, fmt::format("unhurt {}\n", i)) << result.message;
  }
}

TYPED_TEST(Backend, SendsSignalsToOneCommand) {
  LiveSandbox sandbox = this->Open(Policy().Wall("600s"));
  auto patient = sandbox.Start(Shell("trap 'echo heard; exit 5' USR1; touch /tmp/ready; while :; do sleep 0.01; done"));
  auto other = sandbox.Start({"/bin/sleep", "600"});
  ASSERT_TRUE(patient && other);
  ASSERT_TRUE(sandbox.Run(Shell("while [ ! -e /tmp/ready ]; do sleep 0.01; done"))->ok());
  ASSERT_TRUE(patient->Signal(SIGUSR1));
  EXPECT_EQ(patient->Wait().exit_code, 5);
  EXPECT_EQ(patient->Wait().out.data, "heard\n");
  EXPECT_FALSE(other->over());
}

// Whoever of those that a sandbox rests on is killed: its commands end, and are told as failed. A steward, init, and
// who has made the walls or the sandbox.
TYPED_TEST(Backend, IsGoneWhenAnyOfItsProcessesIsKilled) {
  const std::string seconds = this->UniqueSeconds();
  for (int above = 1; above <= 3; ++above) {
    LiveSandbox sandbox = this->Open(Policy().Wall("600s"));
    auto one = sandbox.Start({"/bin/sleep", seconds});
    auto other = sandbox.Start({"/bin/sleep", seconds});
    ASSERT_TRUE(one && other);
    std::vector<pid_t> running;
    while ((running = WithArgument(seconds)).size() < 2) std::this_thread::yield();
    pid_t victim = running[0];
    for (int i = 0; i < above; ++i) victim = sys::ParentInTests(victim);
    ASSERT_GT(victim, 1);
    ASSERT_NE(victim, ::getpid());
    ASSERT_EQ(::kill(victim, SIGKILL), 0);
    EXPECT_EQ(one->Wait().verdict, Verdict::kFailed) << one->Wait().message;
    EXPECT_EQ(other->Wait().verdict, Verdict::kFailed) << other->Wait().message;
    EXPECT_TRUE(Eventually([&] { return WithArgument(seconds).empty(); })) << above;
  }
}

// Its own process, which is killed with no time to tidy up.
TYPED_TEST(Backend, LeavesNothingWhenItsOwnerIsKilled) {
  const std::string seconds = this->UniqueSeconds();
  const pid_t owner = ::fork();
  if (owner == 0) {
    auto engine = Engine::Open({.backend = TypeParam::kName});
    auto sandbox = engine->Open(Policy().Wall("600s"));
    auto one = sandbox->Start({"/bin/sleep", seconds});
    (void)sandbox->Run({"/bin/sleep", seconds});
    ::_exit(0);
  }
  ASSERT_TRUE(Eventually([&] { return WithArgument(seconds).size() == 2; }));
  ASSERT_EQ(::kill(owner, SIGKILL), 0);
  ASSERT_EQ(::waitpid(owner, nullptr, 0), owner);
  EXPECT_TRUE(Eventually([&] { return WithArgument(seconds).empty(); }));
}

TEST(Backends, AnUnknownOneIsAnErrorThatNamesThoseThereAre) {
  const auto engine = Engine::Open({.backend = "glass"});
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().hint.find("native or bwrap"), std::string::npos) << engine.error().Text();
}

}  // namespace
}  // namespace belljar
