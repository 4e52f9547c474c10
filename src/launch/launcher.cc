#include "launch/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <future>
#include <span>
#include <system_error>
#include <thread>

#include "launch/launcher_image.h"
#include "launcher/protocol.h"
#include "sys/pipe.h"
#include "sys/process.h"
#include "sys/receive_message.h"
#include "sys/sealed_file.h"
#include "sys/send_descriptors.h"

namespace belljar::launch {

using launcher::Answer;
using launcher::AnswerKind;
using launcher::Request;
using launcher::RequestKind;

class Launcher::Process {
 public:
  static Expected<std::shared_ptr<Process>> Start();
  Process() = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    // Not by close alone: a forked copy of the host program may have the socket as well.
    if (requests_.valid()) ::shutdown(requests_.get(), SHUT_RDWR);
    if (parent_.joinable()) parent_.join();
  }

  std::uint32_t NextSerial() { return ++serial_; }
  /// False with errno.
  bool Send(const Request& request, std::size_t size, std::span<const int> fds) const;
  bool alive() const {
    pollfd wait{requests_.get(), 0, 0};
    return ::poll(&wait, 1, 0) == 0;
  }

 private:
  base::UniqueFd requests_;
  std::atomic<std::uint32_t> serial_ = 0;
  // SECURITY: lives as long as the launcher, which is told of its end. Where this process is killed while a guest holds
  // the lock of a pipe, the thread that sleeps there keeps all descriptors open and the process from ending; this one,
  // which has no descriptors, ends.
  std::thread parent_;
};

namespace {

constexpr char kName[] = "belljar-launcher";

Error Failed(std::string message, int code) {
  return sys::ErrnoError("start the launcher: " + std::move(message), code);
}

// Descriptors and paths for the child, which shares this process's memory until it execs.
struct Boot {
  int image;
  int requests;
  int owner;
  int null;
  int error;
};

int ExecLauncher(void* argument) {
  auto& boot = *static_cast<Boot*>(argument);
  constexpr int kBehind = launcher::kOwnerFd + 1;
  // Out of the way of the numbers that they get, of which one may be another's.
  const int requests = ::fcntl(boot.requests, F_DUPFD_CLOEXEC, kBehind);
  const int owner = ::fcntl(boot.owner, F_DUPFD_CLOEXEC, kBehind);
  const int image = boot.image >= 0 ? ::fcntl(boot.image, F_DUPFD_CLOEXEC, kBehind) : -1;
  bool good = requests >= 0 && owner >= 0 && ::prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) == 0;
  for (int fd = 0; fd <= STDERR_FILENO && good; ++fd) good = ::dup2(boot.null, fd) == fd;
  good = good && ::dup2(requests, launcher::kRequestsFd) >= 0 && ::dup2(owner, launcher::kOwnerFd) >= 0;
  // Whatever the host program has open without CLOEXEC is none of the launcher's.
  good = good && ::close_range(kBehind, ~0U, CLOSE_RANGE_CLOEXEC) == 0;
  char* const argv[] = {const_cast<char*>(kName), nullptr};
  char* const envp[] = {nullptr};
  if (good && image >= 0) ::syscall(SYS_execveat, image, "", argv, envp, AT_EMPTY_PATH);
  if (good && image < 0) ::execve(LauncherPath(), argv, envp);
  boot.error = errno;
  ::_exit(127);
}

// The pid, or -1 with errno. As sys::Clone: no signal when it ends, and nobody's wait but ours sees it.
pid_t SpawnLauncher(Boot& boot) {
  alignas(16) std::array<char, 32 * 1024> stack;
  const sys::BlockedSignals blocked;
  const pid_t pid = ::clone(ExecLauncher, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK, &boot);
  if (pid > 0 && boot.error != 0) {
    while (::waitpid(pid, nullptr, __WALL) < 0 && errno == EINTR) {
    }
    errno = boot.error;
    return -1;
  }
  return pid;
}

// Waits, without a bound: both ends are ours, and that one of them dies is seen.
bool Receive(int socket, Answer& answer, base::UniqueFd* fd) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  const ssize_t got = sys::ReceiveMessage(socket, std::as_writable_bytes(std::span(&answer, 1)), control, 0, message);
  if (const cmsghdr* head = CMSG_FIRSTHDR(&message);
      got > 0 && fd != nullptr && head != nullptr && head->cmsg_type == SCM_RIGHTS) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(head), sizeof number);
    fd->Reset(number);
  }
  return got == static_cast<ssize_t>(sizeof answer);
}

}  // namespace

Expected<std::shared_ptr<Launcher::Process>> Launcher::Process::Start() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return std::unexpected(Failed("make a socket", errno));
  }
  auto process = std::make_shared<Process>();
  process->requests_.Reset(ends[0]);
  const base::UniqueFd theirs(ends[1]);
  const base::UniqueFd owner(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  const base::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!owner.valid() || !null.valid()) return std::unexpected(Failed("open what it needs", errno));
  Boot boot{.image = -1, .requests = theirs.get(), .owner = owner.get(), .null = null.get(), .error = 0};
  const auto image = sys::MakeSealedFile(kName, LauncherImage(), sys::Holds::kProgram);
  int forbidden = image ? 0 : image.error().code;
  if (image) boot.image = image->get();
  std::promise<bool> told;
  std::future<bool> runs = told.get_future();
  auto be_parent = [&boot, &forbidden, told = std::move(told)]() mutable {
    pid_t pid = boot.image >= 0 ? SpawnLauncher(boot) : -1;
    if (pid < 0) {  // vm.memfd_noexec, or a policy that knows no programs without a path.
      if (boot.image >= 0) forbidden = errno;
      boot.image = -1;
      boot.error = 0;
      pid = SpawnLauncher(boot);
    }
    // SECURITY: otherwise it may be the last thread, who has to close them all.
    const bool alone = pid > 0 && ::close_range(0, ~0U, CLOSE_RANGE_UNSHARE) == 0;
    if (pid > 0 && !alone) forbidden = errno;
    told.set_value(alone);  // What it was called with is gone after this.
    while (pid > 0 && ::waitpid(pid, nullptr, __WALL) < 0 && errno == EINTR) {
    }
  };
  try {
    const sys::BlockedSignals blocked;  // The host program's handlers are not its.
    process->parent_ = std::thread(std::move(be_parent));
  } catch (const std::system_error& error) {
    return std::unexpected(Failed("start a thread", error.code().value()));
  }
  if (!runs.get()) {
    Error error = Failed("neither from memory nor from " + std::string(LauncherPath()), forbidden);
    error.hint =
        "sysctl vm.memfd_noexec=0 allows the first, installing Belljar the second; Launching::kSelf does without";
    return std::unexpected(std::move(error));
  }
  return process;
}

bool Launcher::Process::Send(const Request& request, std::size_t size, std::span<const int> fds) const {
  return sys::SendDescriptors(requests_.get(), std::as_bytes(std::span(&request, 1)).first(size), fds);
}

Expected<std::shared_ptr<Launcher::Process>> Launcher::Current() {
  const std::lock_guard lock(mutex_);
  if (process_ == nullptr || !process_->alive()) {
    auto started = Process::Start();
    if (!started) return std::unexpected(started.error());
    process_ = std::move(*started);  // Sandboxes of the one that died hold on to it until they are done.
  }
  return process_;
}

Expected<Launcher::Handle> Launcher::Expect(const std::string& directory, std::span<const std::string> cgroups) {
  Request request{};
  request.kind = RequestKind::kExpect;
  const auto add = [&](const std::string& path) {
    const std::size_t size = path.size() + 1;
    if (request.leftovers_size + size > sizeof request.leftovers) return false;
    std::memcpy(request.leftovers + request.leftovers_size, path.c_str(), size);
    request.leftovers_size += static_cast<std::uint32_t>(size);
    return true;
  };
  bool fits = cgroups.empty() && directory.empty() ? true : add(directory);
  for (const std::string& path : cgroups) fits = fits && add(path);
  if (!fits) {
    return std::unexpected(
        Error{.step = "start the launcher", .message = "a path is too long", .hint = "set TMPDIR to /tmp"});
  }
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return std::unexpected(Failed("make a socket", errno));
  }
  Handle handle;
  handle.socket.Reset(ends[0]);
  const base::UniqueFd theirs(ends[1]);
  const int fds[] = {theirs.get()};
  const std::size_t size = offsetof(Request, leftovers) + request.leftovers_size;
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto process = Current();
    if (!process) return std::unexpected(process.error());
    handle.process = std::move(*process);
    request.serial = handle.serial = handle.process->NextSerial();
    if (handle.process->Send(request, size, fds)) return handle;
  }
  return std::unexpected(Failed("it ends at once", errno));
}

Expected<Launcher::Started> Launcher::Start(const Handle& handle, std::span<const std::uint64_t> plan,
                                            std::span<const int> slots, int cgroup_fd) {
  const auto bytes = std::as_bytes(plan);
  const auto copy = sys::MakeSealedFile("belljar-plan", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!copy) return std::unexpected(copy.error());
  Request request{};
  request.kind = RequestKind::kStart;
  request.serial = handle.serial;
  request.plan_size = static_cast<std::uint32_t>(bytes.size());
  std::array<int, launcher::kMostDescriptors> fds{};
  std::size_t count = 0;
  const auto add = [&](int fd) -> std::int16_t {
    if (fd < 0) return -1;
    fds[count] = fd;
    return static_cast<std::int16_t>(count++);
  };
  add(copy->get());
  request.cgroup = add(cgroup_fd);
  for (std::size_t i = 0; i < plan::kMaxSlots; ++i) request.slots[i] = i < slots.size() ? add(slots[i]) : -1;
  Answer answer{};
  Started started;
  if (!handle.process->Send(request, offsetof(Request, leftovers), std::span(fds).first(count)) ||
      !Receive(handle.socket.get(), answer, &started.pidfd)) {
    return std::unexpected(Error{.step = "make a sandbox",
                                 .message = "the launcher ended",
                                 .hint = "run it again: another one is started",
                                 .code = ECONNRESET});
  }
  if (answer.kind != AnswerKind::kStarted) return std::unexpected(sys::ErrnoError("clone init", answer.error));
  started.pid = answer.pid;
  return started;
}

Launcher::Ending Launcher::AwaitEnd(const Handle& handle) {
  Answer answer{};
  if (Receive(handle.socket.get(), answer, nullptr) && answer.kind == AnswerKind::kEnded) {
    return {.status = answer.status, .usage = answer.usage};
  }
  return {.status = SIGKILL, .usage = {}};
}

}  // namespace belljar::launch
