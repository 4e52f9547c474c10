#include "prove/stage.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include <fmt/format.h>

#include "jail/sweep.h"
#include "sys/files.h"
#include "sys/process.h"

namespace belljar::prove {
namespace {

constexpr int kAnswerMs = 5000;

std::string TemporaryDirectory() {
  const char* chosen = std::getenv("TMPDIR");
  if (chosen != nullptr && chosen[0] == '/') return chosen;
  // Rather not /tmp: a guest has one of its own, and a rule that allows it must not be what allows the stage.
  return ::access("/var/tmp", W_OK | X_OK) == 0 ? "/var/tmp" : "/tmp";
}

std::string Turned(const std::string& text) { return {text.rbegin(), text.rend()}; }

}  // namespace

std::string MakeSecret() {
  std::uint64_t numbers[2] = {};
  (void)!::getrandom(numbers, sizeof numbers, 0);
  return fmt::format("secret{:016x}{:016x}", numbers[0], numbers[1]);
}

Expected<Stage> Stage::Build(const std::string& corpus, const std::string& secret, Side side) {
  const std::string name = "belljar-" + sys::MakeRunId();
  const std::string directory = TemporaryDirectory() + "/" + name;
  auto keeper = Child::Start(
      {corpus, "stage", "directory=" + directory, "secret=" + Turned(secret), fmt::format("mqueue=/{}", name)});
  if (!keeper) return std::unexpected(keeper.error());
  Stage stage(*std::move(keeper));
  stage.directory_ = directory;
  const std::string answer = stage.ReadLine();
  if (!answer.starts_with("ready ")) {
    return std::unexpected(Error{.step = "set the stage in " + directory,
                                 .message = answer.empty() ? "belljar-corpus did not answer" : answer,
                                 .hint = "set TMPDIR to a writable place"});
  }
  stage.arguments_ = {"directory=" + directory, "secret=" + Turned(secret)};
  std::string_view rest = std::string_view(answer).substr(6);
  while (!rest.empty()) {
    const std::size_t at = rest.find(' ');
    stage.arguments_.emplace_back(rest.substr(0, at));
    rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  }
  // NOLINTNEXTLINE(android-cloexec-open): that it stays open is the point.
  stage.left_open_.Reset(::open((directory + "/secret").c_str(), O_RDONLY));
  stage.arguments_.push_back(fmt::format("fd={}", stage.left_open_.get()));
  char host[256] = "";
  if (::gethostname(host, sizeof host - 1) == 0) stage.arguments_.push_back(fmt::format("hostname={}", host));
  if (const auto space = sys::ReadLink("/proc/self/ns/user")) stage.arguments_.push_back("user_namespace=" + *space);
  if (side == Side::kInside) {
    stage.arguments_.emplace_back("inside=1");
    stage.arguments_.push_back(fmt::format("shared={}", kSharedInside));
    stage.arguments_.emplace_back("scratch=.");  // The private working directory, wherever the form puts it.
  } else {
    stage.arguments_.push_back("shared=" + stage.shared());
    const std::string scratch = directory + "/scratch";
    if (::mkdir(scratch.c_str(), 0777) != 0) return std::unexpected(sys::ErrnoError("make " + scratch, errno));
    stage.arguments_.push_back("scratch=" + scratch);
  }
  return stage;
}

Stage::~Stage() {
  if (directory_.empty()) return;
  left_open_.Reset();
  keeper_.input.Reset();  // It cleans up and ends.
  while (!ReadLine().empty()) {
  }
  // What the keeper could not remove, because the attack made it too deep.
  (void)jail::RemoveTree(directory_.c_str());
}

std::string Stage::ReadLine() {
  std::string line;
  for (;;) {
    pollfd wait{keeper_.output.get(), POLLIN, 0};
    if (::poll(&wait, 1, kAnswerMs) <= 0) return {};
    char c = 0;
    if (::read(keeper_.output.get(), &c, 1) != 1 || c == '\n') return line;
    line += c;
  }
}

std::string Stage::Damage() {
  const sys::BlockedSigpipe blocked;
  if (::write(keeper_.input.get(), "\n", 1) != 1) return "the keeper of the stage is gone";
  const std::string answer = ReadLine();
  if (answer == "intact") return {};
  return answer.starts_with("touched ") ? answer : "the keeper of the stage does not answer";
}

}  // namespace belljar::prove
