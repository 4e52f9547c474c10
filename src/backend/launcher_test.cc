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

namespace belljar {
namespace {

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

template <typename Condition>
bool Eventually(Condition condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
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

TEST(Launcher, EndsWithItsOwner) {
  const pid_t owner = ::fork();
  if (owner == 0) {
    auto engine = Engine::Open();
    (void)engine->Run(Policy().Wall("600s"), {"/bin/sleep", "600"});
    ::_exit(0);
  }
  pid_t launcher = 0;
  pid_t command = 0;
  EXPECT_TRUE(Eventually([&] { return (command = FindBelow(owner, "sleep")) != 0; }));
  launcher = FindBelow(owner, "belljar-launch");
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  ASSERT_NE(launcher, 0);
  EXPECT_TRUE(Eventually([&] {
    const auto processes = Processes();
    return !processes.contains(launcher) && !processes.contains(command);
  }));
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
    const pid_t owner = ::fork();
    if (owner == 0) {
      auto engine = Engine::Open();
      (void)engine->Run(Policy().Wall("600s"), {"/usr/bin/python3", "-c", kHold});
      ::_exit(0);
    }
    pid_t command = 0;
    const bool held = Eventually([&] { return (command = FindBelow(owner, "holds")) != 0 && StateOf(command) == 'S'; });
    const pid_t launcher = FindBelow(owner, "belljar-launch");
    ::kill(owner, SIGKILL);
    const bool gone = Eventually([&] {
      const auto processes = Processes();
      return !processes.contains(launcher) && !processes.contains(command);
    });
    if (command != 0) ::kill(command, SIGKILL);
    ::waitpid(owner, nullptr, 0);
    ASSERT_TRUE(held && gone) << held << gone;
  }
}

// A process that is killed while one of its threads sleeps at the pipe of a guest, who holds its lock
// (tests/containment: test_held_streams.py), keeps all its descriptors: the launcher has to see its end in another way.
TEST(Launcher, EndsWithAnOwnerThatCanNotEnd) {
  constexpr char kHold[] = R"(
import os, socket, time
pairs = [socket.socketpair() for _ in range(4)]
for ours, theirs in pairs:
    theirs.setblocking(False)
    if os.fork() == 0:
        while True:
            os.write(1, b'x' * 4096)
            os.splice(ours.fileno(), 1, 1)
for i in range(40):
    for _, theirs in pairs:
        try: theirs.send(b'x')
        except BlockingIOError: pass
    time.sleep(0.01)
os.execv('/bin/sleep', ['sleep', '600'])
)";
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
    const pid_t owner = ::fork();
    if (owner == 0) {
      auto engine = Engine::Open();
      (void)engine->Run(Policy().Wall("600s"), {"/usr/bin/python3", "-c", kHold});
      ::_exit(0);
    }
    pid_t command = 0;
    EXPECT_TRUE(Eventually([&] { return (command = FindBelow(owner, "python3")) != 0; }));
    const pid_t launcher = FindBelow(owner, "belljar-launch");
    EXPECT_TRUE(Eventually([&] { return FindBelow(owner, "sleep") != 0; }));  // Nobody lets go of the lock any more.
    bool held = true;
    for (int i = 0; i < 20 && held; ++i) {
      held = sleeps(owner);
      std::this_thread::sleep_for(milliseconds(5));
    }
    ::kill(owner, SIGKILL);
    EXPECT_TRUE(Eventually([&] {
      const auto processes = Processes();
      return !processes.contains(launcher) && !processes.contains(command);
    }));
    ::waitpid(owner, nullptr, 0);
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
