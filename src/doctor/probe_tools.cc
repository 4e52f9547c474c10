#include "doctor/probe_tools.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "base/unique_fd.h"
#include "doctor/probe_child.h"
#include "sys/files.h"

namespace belljar::doctor {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kVersionTimeout{3000};
constexpr const char* kTools[] = {"bwrap", "docker", "podman", "runc", "crun", "runsc", "firejail", "nft"};

/// A running `tool --version`, in a session of its own; killed with all it started when the scope ends.
class VersionRun {
 public:
  explicit VersionRun(std::string path) : path_(std::move(path)) {
    int ends[2];
    if (path_.empty() || ::pipe2(ends, O_CLOEXEC) != 0) return;
    output_.Reset(ends[0]);
    base::UniqueFd write_end(ends[1]);
    base::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    const char* const argv[] = {path_.c_str(), "--version", nullptr};
    if (!null.valid()) return;
    pid_ = RawFork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setsid();
    ::dup2(null.get(), 0);
    ::dup2(write_end.get(), 1);
    ::dup2(write_end.get(), 2);
    ::execve(path_.c_str(), const_cast<char* const*>(argv), environ);
    ::_exit(127);
  }
  VersionRun(VersionRun&& other) noexcept
      : path_(std::move(other.path_)), output_(std::move(other.output_)), pid_(std::exchange(other.pid_, -1)) {}
  VersionRun& operator=(VersionRun&&) = delete;
  ~VersionRun() {
    if (pid_ <= 0) return;
    ::kill(static_cast<pid_t>(-pid_), SIGKILL);
    ::kill(static_cast<pid_t>(pid_), SIGKILL);  // in case it had not become a session of its own yet
    ::waitpid(static_cast<pid_t>(pid_), nullptr, __WALL);
  }

  const std::string& path() const { return path_; }

  /// What it printed, or nothing when it isn't done by the deadline.
  std::string Output(Clock::time_point deadline) {
    std::string text;
    while (output_.valid() && text.size() < 4096) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      pollfd ready{.fd = output_.get(), .events = POLLIN};
      const int count = ::poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return {};
      char buffer[1024];
      const ssize_t got = ::read(output_.get(), buffer, sizeof buffer);
      if (got <= 0) break;
      text.append(buffer, static_cast<std::size_t>(got));
    }
    return text;
  }

 private:
  std::string path_;
  base::UniqueFd output_;
  long pid_ = -1;
};

// Whether something listens there; nothing is sent.
std::string DescribeDaemon() {
  std::string path = "/var/run/docker.sock";
  if (const char* host = ::getenv("DOCKER_HOST"); host != nullptr) {
    if (!std::string_view(host).starts_with("unix://")) return fmt::format("daemon at {} (not tried)", host);
    path = host + 7;
  }
  sockaddr_un address{.sun_family = AF_UNIX};
  if (path.size() >= sizeof address.sun_path) return {};
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return {};
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return fmt::format("daemon listens at {}", path);
  }
  if (errno == EACCES) {
    return fmt::format(
        "no right to {}; as root: usermod -aG docker <user> (that is as good as root), then log in again", path);
  }
  return fmt::format("no daemon at {}; as root: systemctl start docker", path);
}

}  // namespace

std::vector<Tool> ProbeTools(std::string_view cgroup_kind) {
  std::vector<VersionRun> runs;
  runs.reserve(std::size(kTools));
  for (const char* name : kTools) runs.emplace_back(sys::FindOnPath(name));
  const Clock::time_point deadline = Clock::now() + kVersionTimeout;
  std::vector<Tool> tools;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Tool tool{.name = kTools[i], .path = runs[i].path()};
    if (!tool.path.empty()) {
      tool.version = FindVersion(runs[i].Output(deadline));
      tool.note = KnownProblem(tool.name, tool.version, cgroup_kind);
      tool.state = tool.note.empty() ? ProbeState::kOk : ProbeState::kPartial;
      if (tool.version.empty()) {
        tool.state = ProbeState::kPartial;
        tool.note = "did not tell its version in time";
      } else if (tool.name == "docker") {
        tool.note = DescribeDaemon();
        if (!tool.note.starts_with("daemon")) tool.state = ProbeState::kPartial;
      }
    }
    tools.push_back(std::move(tool));
  }
  return tools;
}

}  // namespace belljar::doctor
