// Starts a command by posix_spawn, or by clone straight into new namespaces: the floor that no sandbox can be below.
// Every peer that is a program is raced through this one too.
#include "racer.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

extern char** environ;

namespace belljar::bench {
namespace {

constexpr int kNamespaces = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

struct Streams {
  int in;
  int out;
  int err;
};

struct CloneCall {
  char* const* argv;
  Streams streams;
};

// Runs on a stack of its own in the caller's memory; like after vfork, the caller stands still until exec.
int ExecInClone(void* argument) {
  const auto* call = static_cast<const CloneCall*>(argument);
  dup2(call->streams.in, 0);
  dup2(call->streams.out, 1);
  dup2(call->streams.err, 2);
  execve(call->argv[0], call->argv, environ);
  _exit(127);
}

class SpawnRacer : public Racer {
 public:
  explicit SpawnRacer(const RacerOptions& options) : options_(options) {
    for (std::string& word : options_.argv) {
      argv_.push_back(word.data());
      named_ = named_ || word.contains("{id}");
    }
    argv_.push_back(nullptr);
    null_in_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
    null_out_ = open("/dev/null", O_WRONLY | O_CLOEXEC);
    errors_ = memfd_create("errors", MFD_CLOEXEC);
  }

  std::int64_t Once(std::string& why) override {
    std::array<int, 2> ends = {-1, null_out_};
    if (options_.out != Out::kDrop && pipe2(ends.data(), O_CLOEXEC) != 0) return Failed(why, "pipe", errno);
    const std::int64_t began = NowNs();
    pid_t pid = -1;
    if (const int error = Start({null_in_, ends[1], errors_}, pid); error != 0) return Failed(why, "starting", error);
    std::string output;
    if (options_.out != Out::kDrop) {
      close(ends[1]);
      output = ReadAll(ends[0]);
      close(ends[0]);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    const std::int64_t took = NowNs() - began;
    if (status != 0) return Failed(why, Said(), 0);
    if (options_.out != Out::kReport) return took;
    std::int64_t reported = -1;
    std::from_chars(output.data(), output.data() + output.size(), reported);
    if (reported < 0) why = "no number in its output: " + output;
    return reported;
  }

  bool Keep(int count, std::string& why) override {
    // What a peer leaves to init when its first process ends is still the peer's: it becomes ours and is counted.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
      Failed(why, "pipe", errno);
      return false;
    }
    hold_ = ends[1];
    for (int i = 0; i < count; ++i) {
      pid_t pid = -1;
      if (const int error = Start({ends[0], null_out_, errors_}, pid); error != 0) {
        Failed(why, "starting", error);
        return false;
      }
      kept_.push_back(pid);
    }
    close(ends[0]);
    return true;
  }

  // The guests read standard input until it ends, so each sandbox goes the way it goes after a normal run.
  void Drop() override {
    close(std::exchange(hold_, -1));
    const std::int64_t deadline = NowNs() + 60'000'000'000;
    while (true) {
      const pid_t ended = waitpid(-1, nullptr, WNOHANG);
      if (ended < 0) break;
      if (ended > 0) {
        std::erase(kept_, ended);
        continue;
      }
      if (NowNs() > deadline) {
        for (const pid_t pid : kept_) kill(pid, SIGKILL);
      }
      usleep(2000);
      if (NowNs() > deadline + 5'000'000'000) break;
    }
    kept_.clear();
    prctl(PR_SET_CHILD_SUBREAPER, 0);
  }

 private:
  // Some peers want a new name for each sandbox: {id} in an argument stands for one.
  int Start(const Streams& streams, pid_t& pid) {
    if (options_.mode == "clone") return StartInClone(streams, pid);
    if (!named_) return Spawn(argv_.data(), streams, pid);
    const std::string id = "bj-bench-" + std::to_string(getpid()) + "-" + std::to_string(++last_id_);
    std::vector<std::string> words = options_.argv;
    std::vector<char*> argv;
    for (std::string& word : words) {
      if (const auto at = word.find("{id}"); at != std::string::npos) word.replace(at, 4, id);
      argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    return Spawn(argv.data(), streams, pid);
  }

  static int Spawn(char* const* argv, const Streams& streams, pid_t& pid) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, streams.in, 0);
    posix_spawn_file_actions_adddup2(&actions, streams.out, 1);
    posix_spawn_file_actions_adddup2(&actions, streams.err, 2);
    const int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
  }

  int StartInClone(const Streams& streams, pid_t& pid) {
    thread_local std::array<char, 16384> stack;
    CloneCall call = {argv_.data(), streams};
    const int user = geteuid() == 0 ? 0 : CLONE_NEWUSER;
    pid = clone(ExecInClone, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK | kNamespaces | user | SIGCHLD, &call);
    return pid < 0 ? errno : 0;
  }

  std::string ReadAll(int fd) const {
    std::string kept;
    std::array<char, 65536> buffer;
    for (ssize_t got = 0; (got = read(fd, buffer.data(), buffer.size())) > 0;) {
      if (options_.out != Out::kRead) kept.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return kept;
  }

  // The end of what failing runs wrote to standard error.
  std::string Said() {
    const std::lock_guard lock(mutex_);
    std::string text(400, '\0');
    const off_t size = lseek(errors_, 0, SEEK_END);
    const ssize_t got = pread(errors_, text.data(), text.size(), std::max<off_t>(0, size - 400));
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text.empty() ? "it ended badly and said nothing" : text;
  }

  static std::int64_t Failed(std::string& why, const std::string& what, int error) {
    why = error == 0 ? what : what + ": " + std::strerror(error);
    return -1;
  }

  RacerOptions options_;
  std::vector<char*> argv_;
  bool named_ = false;
  std::atomic<int> last_id_ = 0;
  int null_in_, null_out_, errors_;
  int hold_ = -1;
  std::vector<pid_t> kept_;
  std::mutex mutex_;
};

}  // namespace
}  // namespace belljar::bench

int main(int argc, char** argv) {
  const auto options = belljar::bench::ReadOptions(argc, argv);
  belljar::bench::SpawnRacer racer(options);
  return belljar::bench::Serve(racer, options);
}
