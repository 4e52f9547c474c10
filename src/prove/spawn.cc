#include "prove/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "sys/pipe.h"
#include "sys/process.h"

namespace belljar::prove {
namespace {

constexpr int kPatience = 400;  // of 5 ms

constexpr std::size_t kKept = 8192;  // of each end of a stream

// Keeps the first and the last bytes of what comes.
void Keep(std::string& kept, const char* data, std::size_t size) {
  kept.append(data, size);
  if (kept.size() > 3 * kKept) kept.erase(kKept, kept.size() - 2 * kKept);
}

// False at the end of the stream.
bool Drain(const base::UniqueFd& from, std::string& to, std::uint64_t* bytes) {
  std::array<char, 16384> buffer{};
  const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) return false;
  if (bytes != nullptr) *bytes += static_cast<std::uint64_t>(got);
  Keep(to, buffer.data(), static_cast<std::size_t>(got));
  return true;
}

}  // namespace

Expected<Child> Child::Start(const std::vector<std::string>& argv) {
  std::array<sys::Pipe, 3> pipes;
  for (sys::Pipe& pipe : pipes) {
    auto made = sys::MakePipe("make a pipe");
    if (!made) return std::unexpected(made.error());
    pipe = *std::move(made);
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, pipes[0].read.get(), 0);
  ::posix_spawn_file_actions_adddup2(&actions, pipes[1].write.get(), 1);
  ::posix_spawn_file_actions_adddup2(&actions, pipes[2].write.get(), 2);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> arguments;
  arguments.reserve(argv.size() + 1);
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  Child child;
  const int failed = ::posix_spawn(&child.pid_, argv[0].c_str(), &actions, &attributes, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (failed != 0) {
    child.pid_ = -1;
    return std::unexpected(sys::ErrnoError("start " + argv[0], failed));
  }
  child.input = std::move(pipes[0].write);
  child.output = std::move(pipes[1].read);
  child.error = std::move(pipes[2].read);
  return child;
}

Child::Child(Child&& other) noexcept
    : input(std::move(other.input)),
      output(std::move(other.output)),
      error(std::move(other.error)),
      pid_(std::exchange(other.pid_, -1)) {}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(input, other.input);
  std::swap(output, other.output);
  std::swap(error, other.error);
  std::swap(pid_, other.pid_);
  return *this;
}

Child::~Child() {
  if (pid_ <= 0) return;
  Kill();
  Wait();
}

// SIGTERM first: a fence ends what it fenced in before it goes, which nobody could find afterwards.
void Child::Kill() const {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGTERM);
  for (int round = 0; round < kPatience; ++round) {
    siginfo_t ended{};
    if (::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid != 0) return;
    ::poll(nullptr, 0, 5);
  }
  ::kill(pid_, SIGKILL);
}

int Child::Wait() {
  int status = 0;
  while (pid_ > 0 && ::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

Expected<Finished> RunToEnd(const std::vector<std::string>& argv, std::chrono::milliseconds limit, int cancel) {
  auto child = Child::Start(argv);
  if (!child) return std::unexpected(child.error());
  child->input.Reset();
  Finished finished;
  const std::uint64_t deadline = sys::NowNs() + static_cast<std::uint64_t>(limit.count()) * 1'000'000;
  bool out_open = true;
  bool err_open = true;
  while (out_open || err_open) {
    const std::uint64_t now = sys::NowNs();
    if (now >= deadline) {
      finished.timed_out = true;
      break;
    }
    std::array<pollfd, 3> waits{{{out_open ? child->output.get() : -1, POLLIN, 0},
                                 {err_open ? child->error.get() : -1, POLLIN, 0},
                                 {cancel, POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), static_cast<int>((deadline - now) / 1'000'000) + 1) < 0) continue;
    if (waits[2].revents != 0) break;
    if (waits[0].revents != 0) out_open = Drain(child->output, finished.out, &finished.out_bytes);
    if (waits[1].revents != 0) err_open = Drain(child->error, finished.err, nullptr);
  }
  if (out_open || err_open) child->Kill();
  finished.status = child->Wait();
  return finished;
}

}  // namespace belljar::prove
