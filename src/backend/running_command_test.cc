// Commands that were started in a live sandbox: what can be done to them while they run.
#include <belljar/engine.h>

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "sys/pipe.h"

namespace belljar {
namespace {

std::vector<std::string> Shell(std::string script) { return {"/bin/sh", "-c", std::move(script)}; }

// All that a command has said so far.
class Heard {
 public:
  OutputCallback Ear() {
    return [this](OutputStream stream, std::string_view piece) {
      const std::lock_guard lock(mutex_);
      (stream == OutputStream::kOut ? out_ : err_) += piece;
      more_.notify_all();
    };
  }
  void Await(const std::string& text) {
    std::unique_lock lock(mutex_);
    more_.wait(lock, [&] { return out_.contains(text); });
  }
  std::string out() {
    const std::lock_guard lock(mutex_);
    return out_;
  }
  std::string err() {
    const std::lock_guard lock(mutex_);
    return err_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable more_;
  std::string out_, err_;
};

class RunningCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    auto engine = Engine::Open();
    ASSERT_TRUE(engine);
    engine_.emplace(std::move(*engine));
    auto sandbox = engine_->Open(Policy().Wall("600s"));
    ASSERT_TRUE(sandbox) << sandbox.error().Text();
    sandbox_.emplace(std::move(*sandbox));
  }
  RunningCommand Start(std::vector<std::string> argv, RunOptions options = {}) {
    auto command = sandbox_->Start(argv, std::move(options));
    EXPECT_TRUE(command) << command.error().Text();
    return std::move(*command);
  }
  std::optional<Engine> engine_;
  std::optional<LiveSandbox> sandbox_;
};

TEST_F(RunningCommandTest, ReadsWhatIsWrittenAndSaysWhatItHears) {
  Heard heard;
  RunningCommand command = Start(Shell("while read -r line; do echo got $line; echo $line >&2; done; echo end"),
                                 {.input = "first\n", .open_input = true, .on_output = heard.Ear()});
  heard.Await("got first\n");
  ASSERT_TRUE(command.Write("second\n"));
  heard.Await("got second\n");
  EXPECT_FALSE(command.over());
  command.CloseInput();
  const Result& result = command.Wait();
  EXPECT_TRUE(result.ok()) << result.message;
  EXPECT_EQ(result.out.data, "got first\ngot second\nend\n") << "captured as well";
  EXPECT_EQ(heard.out(), result.out.data);
  EXPECT_EQ(heard.err(), "first\nsecond\n");
  EXPECT_TRUE(command.over());
  EXPECT_EQ(&command.Wait(), &result) << "as often as one likes";
  EXPECT_FALSE(command.Write("late"));
  EXPECT_FALSE(command.Signal(SIGINT));
}

TEST_F(RunningCommandTest, TellsWritersThatNobodyReads) {
  Heard heard;
  RunningCommand command =
      Start(Shell("exec <&-; echo closed; exec sleep 600"), {.open_input = true, .on_output = heard.Ear()});
  heard.Await("closed");
  const auto written = command.Write(std::string(16 << 20, 'x'));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, "the command reads no more");
  command.Cancel();
  EXPECT_EQ(command.Wait().verdict, Verdict::kCancelled);
}

TEST_F(RunningCommandTest, SignalsGoToItsGroupAndToNoOther) {
  Heard heard, others;
  RunningCommand command = Start(Shell("trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 600; done"),
                                 {.on_output = heard.Ear()});
  RunningCommand other =
      Start(Shell("trap 'exit 6' INT; echo ready; read never"), {.open_input = true, .on_output = others.Ear()});
  heard.Await("ready");
  others.Await("ready");
  EXPECT_FALSE(command.Signal(0));
  EXPECT_FALSE(command.Signal(65));
  ASSERT_TRUE(command.Signal(SIGINT));
  EXPECT_EQ(command.Wait().exit_code, 5) << "its sleep was interrupted too";
  EXPECT_EQ(heard.out(), "ready\ncaught\n");
  EXPECT_FALSE(other.over());
  ASSERT_TRUE(other.Signal(SIGKILL));
  EXPECT_EQ(other.Wait().verdict, Verdict::kSignaled) << "asked for by the caller, not by a limit";
}

TEST_F(RunningCommandTest, HasItsOwnDirectoryAndEnvironment) {
  const auto first = sandbox_->Run(Shell("pwd; echo $WORD"), {.workdir = "/tmp", .environment = {{"WORD", "own"}}});
  ASSERT_TRUE(first) << first.error().Text();
  EXPECT_EQ(first->out.data, "/tmp\nown\n") << first->message;
  EXPECT_EQ(sandbox_->Run(Shell("pwd; echo $WORD"))->out.data, "/workspace\n\n");
  const auto nowhere = sandbox_->Run({"/bin/true"}, {.workdir = "/nowhere"});
  ASSERT_TRUE(nowhere);
  EXPECT_EQ(nowhere->verdict, Verdict::kFailed);
  EXPECT_TRUE(nowhere->message.contains("/nowhere")) << nowhere->message;
  EXPECT_FALSE(sandbox_->Run({"/bin/true"}, {.workdir = "relative"}));
  EXPECT_FALSE(sandbox_->Run({"/bin/true"}, {.environment = {{"A=B", "x"}}}));
  EXPECT_TRUE(sandbox_->Run({"/bin/true"})->ok()) << "that hurt nobody";
}

TEST_F(RunningCommandTest, IsGivenChannelsAndNothingElse) {
  auto channel = sys::MakePipe("make a pipe");
  ASSERT_TRUE(channel);
  const auto result = sandbox_->Run(Shell("echo through >&9; ls /proc/self/fd"),
                                    {.channels = {{.fd = channel->write.get(), .number = 9, .name = "log"}}});
  ASSERT_TRUE(result) << result.error().Text();
  EXPECT_EQ(result->out.data, "0\n1\n2\n3\n9\n") << "3 is the directory that is listed" << result->message;
  char text[32] = {};
  channel->write.Reset();
  EXPECT_EQ(::read(channel->read.get(), text, sizeof text), 8) << "and nobody inside holds it any more";
  EXPECT_EQ(std::string(text), "through\n");
  ASSERT_EQ(result->receipt.channels.size(), 1U);
  EXPECT_EQ(result->receipt.channels[0].name, "log");
  EXPECT_TRUE(sandbox_->Run({"/bin/true"})->receipt.channels.empty());
  EXPECT_FALSE(sandbox_->Run({"/bin/true"}, {.channels = {{.fd = 500, .number = 9, .name = ""}}}));
}

// Its process has waited for it, and more descriptors pass through that than it may have.
TEST_F(RunningCommandTest, GetsItsChannelsUnderALimitOfDescriptors) {
  auto few = engine_->Open(Policy().OpenFiles("5"));
  ASSERT_TRUE(few) << few.error().Text();
  auto channel = sys::MakePipe("make a pipe");
  ASSERT_TRUE(channel);
  for (int i = 0; i < 3; ++i) {
    const auto result = few->Run({"/usr/bin/python3", "-ISc", "import os; os.write(4, b'through')"},
                                 {.channels = {{.fd = channel->write.get(), .number = 4, .name = ""}}});
    ASSERT_TRUE(result) << result.error().Text();
    ASSERT_TRUE(result->ok()) << result->message << result->err.data;
    char text[32] = {};
    EXPECT_EQ(::read(channel->read.get(), text, sizeof text), 7);
  }
}

TEST_F(RunningCommandTest, HasATerminalOfItsOwn) {
  Heard heard;
  RunningCommand command =
      Start(Shell("trap 'stty size; exit 0' WINCH; [ -t 0 ] && stty size < /dev/tty; while :; do sleep 0.01; done"),
            {.streams = StreamMode::kTerminal,
             .open_input = true,
             .on_output = heard.Ear(),
             .terminal_size = {.rows = 33, .columns = 101}});
  heard.Await("33 101");
  ASSERT_TRUE(command.Resize({.rows = 40, .columns = 120}));
  heard.Await("40 120");
  EXPECT_EQ(command.Wait().verdict, Verdict::kExited) << command.Wait().message;
}

// Whoever opens another's terminal reads what is typed there. One that a command makes itself is its own affair.
TEST_F(RunningCommandTest, NoOtherCanOpenItsTerminal) {
  Heard heard;
  RunningCommand command = Start(Shell("echo here; read line; echo got $line"),
                                 {.streams = StreamMode::kTerminal, .open_input = true, .on_output = heard.Ear()});
  heard.Await("here");
  const auto other = sandbox_->Run(Shell("ls /dev/pts; script -qc tty /dev/null"));
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->out.data.starts_with("ptmx\n/dev/pts/0")) << other->out.data;
  ASSERT_TRUE(command.Write("typed\n"));
  EXPECT_EQ(command.Wait().verdict, Verdict::kExited);
  EXPECT_TRUE(heard.out().contains("got typed")) << heard.out();
}

TEST_F(RunningCommandTest, IsCancelledByEitherToken) {
  auto token = CancelToken::Make();
  ASSERT_TRUE(token);
  RunningCommand own = Start({"/bin/sleep", "600"}, {.cancel = &*token});
  own.Cancel();
  EXPECT_EQ(own.Wait().verdict, Verdict::kCancelled);
  RunningCommand callers = Start({"/bin/sleep", "600"}, {.cancel = &*token});
  token->Cancel();
  EXPECT_EQ(callers.Wait().verdict, Verdict::kCancelled);
}

TEST_F(RunningCommandTest, EndsWithItsHandleAndWithItsSandbox) {
  {
    const RunningCommand dropped = Start({"/bin/sleep", "600"});
  }
  RunningCommand left = Start({"/bin/sleep", "600"});
  sandbox_.reset();
  EXPECT_EQ(left.Wait().verdict, Verdict::kCancelled) << left.Wait().message;
}

TEST_F(RunningCommandTest, StreamedOutputHasItsLimit) {
  Heard heard;
  auto sandbox = engine_->Open(Policy().Wall("600s").OutputLimit("64K"));
  ASSERT_TRUE(sandbox);
  const auto result = sandbox->Run(Shell("yes"), {.streams = StreamMode::kPassThrough, .on_output = heard.Ear()});
  ASSERT_TRUE(result) << result.error().Text();
  EXPECT_EQ(result->verdict, Verdict::kOutputLimit);
  EXPECT_EQ(heard.out().size(), 64U << 10);
}

TEST_F(RunningCommandTest, WrongOptionsAreTold) {
  EXPECT_FALSE(sandbox_->Run({"/bin/cat"}, {.open_input = true}));
  EXPECT_FALSE(sandbox_->Start({"/bin/cat"}, {.open_input = true, .descriptors = {.in = 0}}));
  EXPECT_FALSE(sandbox_->Start({"/bin/cat"}, {.streams = StreamMode::kTerminal}));
  RunningCommand plain = Start({"/bin/true"});
  EXPECT_FALSE(plain.Write("x"));
  EXPECT_FALSE(plain.Resize({.rows = 1, .columns = 1}));
  EXPECT_TRUE(plain.Wait().ok());
}

}  // namespace
}  // namespace belljar
