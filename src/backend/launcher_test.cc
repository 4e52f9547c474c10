// The launcher as an engine's owner sees it: killed, orphaned, and with nothing of its owner in it.
#include <belljar/engine.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <thread>

#include "sys/processes_in_tests.h"

namespace belljar {
namespace {

using sys::Eventually;

using std::chrono::milliseconds;

struct Process {
  pid_t parent = 0;
  std::string name;
};

std::map<pid_t, Process> Processes() {
  std::map<pid_t, Process> found;
  DIR* const proc = ::opendir("/proc");
  while (const dirent* entry = ::readdir(proc)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(file, text);
    const std::size_t open = text.find('(');
    const std::size_t close = text.rfind(')');
    if (close == std::string::npos) continue;
    Process process{.parent = 0, .name = text.substr(open + 1, close - open - 1)};
    char state = 0;
    std::istringstream(text.substr(close + 1)) >> state >> process.parent;
    if (state != 'Z') found[pid] = process;
  }
  ::closedir(proc);
  return found;
}

// The first process of that name below `above`, or 0.
pid_t FindBelow(pid_t above, const std::string& name) {
  const auto processes = Processes();
  for (const auto& [pid, process] : processes) {
    if (process.name != name) continue;
    for (pid_t up = pid; up > 1 && processes.contains(up); up = processes.at(up).parent) {
      if (processes.at(up).parent == above) return pid;
    }
  }
  return 0;
}

// Memory of another process that can be read at all.
bool Holds(pid_t pid, const std::string& word) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  const int memory = ::open(("/proc/" + std::to_string(pid) + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
  std::string line;
  bool held = false;
  while (std::getline(maps, line)) {
    unsigned long begin = 0;
    unsigned long end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx r", &begin, &end) != 2 || line.contains("[v")) continue;
    std::string bytes(end - begin, '\0');
    const ssize_t got = ::pread(memory, bytes.data(), bytes.size(), static_cast<off_t>(begin));
    if (got > 0 && bytes.contains(word)) held = true;
  }
  ::close(memory);
  return held;
}

TEST(Launcher, IsStartedAgainWhenItDied) {
  auto engine = Engine::Open();
  ASSERT_TRUE(engine);
  Expected<Result> result;
  std::thread runner([&] { result = engine->Run(Policy().Wall("600s"), {"/bin/sleep", "600"}); });
  pid_t launcher = 0;
  const bool runs = Eventually([] { return FindBelow(::getpid(), "sleep") != 0; });
  launcher = FindBelow(::getpid(), "belljar-launch");
  if (launcher != 0) ::kill(launcher, SIGKILL);
  runner.join();
  ASSERT_TRUE(runs && launcher != 0);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->verdict, Verdict::kFailed) << result->message;
  EXPECT_TRUE(Eventually([] { return FindBelow(::getpid(), "sleep") == 0; }));
  const auto next = engine->Run({}, {"/bin/echo", "again"});
  ASSERT_TRUE(next);
  EXPECT_EQ(next->out.data, "again\n") << next->message;
}

// Another process, which has an engine and runs a command by it.
class Owner {
 public:
  explicit Owner(const std::vector<std::string>& command) : pid_(::fork()) {
    if (pid_ != 0) return;
    auto engine = Engine::Open();
    (void)engine->Run(Policy().Wall("600s"), command);
    ::_exit(0);
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() {
    ::kill(pid_, SIGKILL);
    if (command_ != 0) ::kill(command_, SIGKILL);  // It holds what its owner may sleep at.
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t Pid() const { return pid_; }
  // Once the command goes by that name. False when it never does, or no launcher is there.
  bool Runs(const std::string& name) {
    const bool runs = Eventually([&] { return (command_ = FindBelow(pid_, name)) != 0; });
    launcher_ = FindBelow(pid_, "belljar-launch");
    return runs && launcher_ != 0;
  }
  pid_t Command() const { return command_; }
  // Whether launcher and command end when the owner is killed.
  bool TakesAllAlong() {
    ::kill(pid_, SIGKILL);
    const bool gone = Eventually([&] {
      const auto processes = Processes();
      return !processes.contains(launcher_) && !processes.contains(command_);
    });
    if (gone) command_ = 0;
    return gone;
  }

 private:
  pid_t pid_;
  pid_t command_ = 0;
  pid_t launcher_ = 0;
};

TEST(Launcher, EndsWithItsOwner) {
  Owner owner({"/bin/sleep", "600"});
  ASSERT_TRUE(owner.Runs("sleep"));
  EXPECT_TRUE(owner.TakesAllAlong());
}

char StateOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t close = text.rfind(')');
  return close == std::string::npos ? 'Z' : text[close + 2];
}

// A process that is killed closes its files, and sleeps at the pipe of a guest who holds its lock (tests/containment:
// test_held_streams.py): the last of its threads does, whichever that is.
TEST(Launcher, EndsWithAnOwnerThatCanNotCloseItsFiles) {
  constexpr char kHold[] = R"(
import ctypes, os, socket
ours, theirs = socket.socketpair()
ctypes.CDLL(None).prctl(15, b'holds', 0, 0, 0)  # PR_SET_NAME
os.splice(ours.fileno(), 1, 1)
)";
  for (int attempt = 0; attempt < 10; ++attempt) {
    Owner owner({"/usr/bin/python3", "-c", kHold});
    ASSERT_TRUE(owner.Runs("holds"));
    ASSERT_TRUE(Eventually([&] { return StateOf(owner.Command()) == 'S'; }));
    ASSERT_TRUE(owner.TakesAllAlong());
  }
}

// A process that is killed while one of its threads sleeps at the pipe of a guest, who holds its lock
// (tests/containment: test_held_streams.py), keeps all its descriptors: the launcher has to see its end in another way.
TEST(Launcher, EndsWithAnOwnerThatCanNotEnd) {
  std::stringstream hold;
  hold << std::ifstream(BELLJAR_SOURCE "/tests/containment/guests/fill_and_hold.py").rdbuf();
  ASSERT_TRUE(hold.str().contains("toss"));
  hold << "for i in range(40): toss()\nos.execv('/bin/sleep', ['sleep', '600'])\n";
  const auto sleeps = [](pid_t pid) {  // One of its threads, and no signal wakes it.
    for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
      std::ifstream file(task.path() / "stat");
      std::string text;
      std::getline(file, text);
      if (const std::size_t close = text.rfind(')'); close != std::string::npos && text[close + 2] == 'D') return true;
    }
    return false;
  };
  // Whether somebody sleeps there in the end is a matter of luck.
  for (int attempt = 0; attempt < 20; ++attempt) {
    Owner owner({"/usr/bin/python3", "-c", hold.str()});
    ASSERT_TRUE(owner.Runs("python3"));
    // Nobody lets go of the lock any more.
    ASSERT_TRUE(Eventually([&] { return FindBelow(owner.Pid(), "sleep") != 0; }));
    bool held = true;
    for (int i = 0; i < 20 && held; ++i) {
      held = sleeps(owner.Pid());
      std::this_thread::sleep_for(milliseconds(5));
    }
    ASSERT_TRUE(owner.TakesAllAlong());
    if (held) return;
  }
  GTEST_SKIP() << "nobody slept at the pipe";
}

// Init is a copy of whoever makes it: with the launcher nothing of the caller is in it, without it the caller's memory.
TEST(Launcher, NothingOfTheCallerIsInASandbox) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may look into init's memory";
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the memory of a sanitizer is too large to be looked through";
#endif
  std::string secret(48, ' ');
  std::random_device random;
  for (char& c : secret) c = static_cast<char>('a' + random() % 26);
  ASSERT_TRUE(Holds(::getpid(), secret));
  for (const Launching launching : {Launching::kSelf, Launching::kLauncher}) {
    auto engine = Engine::Open({.launching = launching});
    ASSERT_TRUE(engine);
    auto token = CancelToken::Make();
    ASSERT_TRUE(token);
    std::thread runner([&] {
      RunOptions options;
      options.cancel = &*token;
      (void)engine->Run(Policy().Wall("600s"), {"/bin/sleep", "600"}, options);
    });
    EXPECT_TRUE(Eventually([] { return FindBelow(::getpid(), "sleep") != 0; }));
    const pid_t init = FindBelow(::getpid(), "belljar-init");
    EXPECT_NE(init, 0);
    EXPECT_EQ(Holds(init, secret), launching == Launching::kSelf);
    if (launching == Launching::kLauncher) {
      EXPECT_FALSE(Holds(FindBelow(::getpid(), "belljar-launch"), secret));
    }
    token->Cancel();
    runner.join();
  }
}

}  // namespace
}  // namespace belljar
