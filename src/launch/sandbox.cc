#include "launch/sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "jail/run_child.h"
#include "launch/launcher_image.h"
#include "launch/reception.h"
#include "plan/explain.h"
#include "sys/pipe.h"
#include "sys/process.h"
#include "sys/sealed_file.h"
#include "sys/user_namespace.h"

namespace belljar::launch {
namespace {

// False when it does not fit: a janitor must not act on half a path.
bool CopyPath(char (&to)[512], const std::string& from) {
  from.copy(to, sizeof to - 1);
  return from.size() < sizeof to;
}

constexpr int kSetupMs = 30'000;

const sys::ArgumentArea& CallerStrings() {
  static const sys::ArgumentArea area = sys::FindArgumentArea();
  return area;
}

}  // namespace

Expected<Sandbox> Sandbox::Start(const plan::CompiledPlan& plan, const Host& host, const Attached& given) {
  Sandbox sandbox(plan);
  std::vector<base::UniqueFd> id_maps;
  if (auto done = sandbox.PrepareHost(host, id_maps); !done) return std::unexpected(done.error());
  auto control_of_init = sandbox.OpenConnection();
  if (!control_of_init) return std::unexpected(control_of_init.error());
  if (auto done = sandbox.connection.SendStreams(sandbox.Guest(), given); !done) return std::unexpected(done.error());
  if (auto done = sandbox.MakeInit(std::move(*control_of_init), id_maps); !done) return std::unexpected(done.error());
  return sandbox;
}

Expected<Sandbox> Sandbox::Prepare(const plan::CompiledPlan& plan, const Host& host) {
  Sandbox sandbox(plan);
  std::vector<base::UniqueFd> id_maps;
  if (auto done = sandbox.PrepareHost(host, id_maps); !done) return std::unexpected(done.error());
  auto control_of_init = sandbox.OpenConnection();
  if (!control_of_init) return std::unexpected(control_of_init.error());
  if (auto done = sandbox.MakeInit(std::move(*control_of_init), id_maps); !done) return std::unexpected(done.error());
  if (auto done = sandbox.AwaitPrepared(); !done) return std::unexpected(done.error());
  return sandbox;
}

Expected<void> Sandbox::AwaitPrepared() {
  for (;;) {
    pollfd wait{connection.control.get(), POLLIN, 0};
    int ready = 0;
    while ((ready = ::poll(&wait, 1, kSetupMs)) < 0 && errno == EINTR) {
    }
    Received told;
    if (ready != 1 || ReceiveReport(connection.control.get(), told) != Reception::kReport) {
      if (std::string words = Words(); !words.empty()) {
        return std::unexpected(Error{.step = "prepare a sandbox", .message = std::move(words), .hint = {}});
      }
      return std::unexpected(sys::ErrnoError("prepare a sandbox", ETIMEDOUT));
    }
    if (told.report.kind == plan::ReportKind::kPrepared) return {};
    if (told.report.kind == plan::ReportKind::kInside) {
      FoundInit(told.sender);
      continue;
    }
    if (told.report.kind == plan::ReportKind::kSocketDiag) {
      socket_diag = std::move(told.fd);
      continue;
    }
    if (told.report.kind != plan::ReportKind::kListener) {
      const std::string step = plan::DescribeStep(plan_->plan(), told.report.step);
      return std::unexpected(sys::ErrnoError("prepare a sandbox: " + step, told.report.error));
    }
    listener = std::move(told.fd);
  }
}

Expected<void> Sandbox::Begin(std::span<const std::uint64_t> command, const Attached& given) {
  return Begin(connection, command, given);
}

Expected<void> Sandbox::Begin(Connection& steward, std::span<const std::uint64_t> command,
                              const Attached& given) const {
  // In this order: when the guest begins, its ends of the streams are nobody else's.
  if (auto done = steward.SendStreams(Guest(), given); !done) return done;
  return steward.SendCommand(command);
}

Expected<base::UniqueFd> Sandbox::OpenStewards(Connection& connection) {
  auto theirs = connection.Open();
  if (!theirs) return theirs;
  // By whom a command says that it starts, its supervisor finds its steward.
  const int yes = 1;
  if (::setsockopt(connection.control.get(), SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) == 0) return theirs;
  return std::unexpected(sys::ErrnoError("ask who speaks for a command", errno));
}

Expected<void> Sandbox::Hire(plan::Hire how, const base::UniqueFd& control) const {
  const std::array<int, 1> end{control.get()};
  return SendDescriptors(connection.control.get(), static_cast<char>(how), end, "hand a command to a live sandbox");
}

Expected<Connection> Sandbox::AddSteward() const {
  Connection added;
  auto theirs = OpenStewards(added);
  if (!theirs) return std::unexpected(theirs.error());
  if (auto done = Hire(plan::Hire::kAhead, *theirs); !done) return std::unexpected(done.error());
  return added;
}

Expected<Connection> Sandbox::BeginAtTerminal(std::span<const std::uint64_t> command, const Attached& given) const {
  Connection added;
  auto theirs = OpenStewards(added);
  if (!theirs) return std::unexpected(theirs.error());
  if (auto done = added.SendCommand(command); !done) return std::unexpected(done.error());
  if (auto done = added.SendStreams(Guest(), given); !done) return std::unexpected(done.error());
  if (auto done = Hire(plan::Hire::kTerminal, *theirs); !done) return std::unexpected(done.error());
  return added;
}

// Somebody who removes what is left on the host should this process be killed. Before anything is made there.
Expected<void> Sandbox::PrepareCleanUp(const Host& host) {
  if (plan_->by_launcher && host.launcher != nullptr) {
    auto handle = host.launcher->Expect(plan_->private_directory, plan_->cgroup_paths);
    if (!handle) return std::unexpected(handle.error());
    handle_ = std::move(*handle);
    return {};
  }
  if (plan_->cgroup_paths.empty() && plan_->private_directory.empty()) return {};
  jail::Leftovers leftovers{};
  std::size_t index = 0;
  bool fits = CopyPath(leftovers.directory, plan_->private_directory);
  for (const std::string& path : plan_->cgroup_paths) {
    fits = fits && index < jail::Leftovers::kMaxCgroups && CopyPath(leftovers.cgroups[index], path);
    ++index;
  }
  if (!fits) {
    return std::unexpected(
        Error{.step = "start the janitor", .message = "a path is longer than 511 bytes", .hint = "set TMPDIR to /tmp"});
  }
  auto janitor = Janitor::Start(leftovers, plan_->janitor_makes_network ? Network::kMake : Network::kLeave);
  if (!janitor) return std::unexpected(janitor.error());
  janitor_ = std::move(*janitor);
  return {};
}

Expected<void> Sandbox::PrepareHost(const Host& host, std::vector<base::UniqueFd>& id_maps) {
  if (plan_->plan().init_is_pid1 == 0) orphans_.Adopt();
  if (auto done = PrepareCleanUp(host); !done) return done;
  if (!plan_->private_directory.empty()) {
    if (::mkdir(plan_->private_directory.c_str(), 0700) != 0) {
      return std::unexpected(
          sys::ErrnoError("make " + plan_->private_directory, errno, "set TMPDIR to a writable place"));
    }
    private_directory_ = plan_->private_directory;
  }
  if (!plan_->cgroup_paths.empty()) {
    auto made = sys::Cgroup::Create(host.cgroups, plan_->cgroup_name, plan_->cgroup_limits, plan_->cgroup_entry);
    if (!made) return std::unexpected(made.error());
    cgroup = std::move(*made);
  }
  for (const plan::IdMap& map : plan_->id_maps) {
    auto made = sys::MakeIdMap(map.file_uid, map.file_gid, plan_->guest_uid, plan_->guest_gid);
    if (!made) return std::unexpected(made.error());
    id_maps.push_back(std::move(*made));
  }
  return PrepareWalls();
}

Expected<void> Sandbox::PrepareWalls() {
  if (!plan_->walls) return {};
  const plan::Walls& walls = *plan_->walls;
  std::string arguments;
  for (const std::string& word : walls.arguments) arguments.append(word).push_back('\0');
  const std::string_view block(reinterpret_cast<const char*>(plan_->block.data()),
                               plan_->block.size() * sizeof(std::uint64_t));
  const auto add = [&](const char* name, std::string_view bytes, sys::Holds what) -> Expected<void> {
    auto file = sys::MakeSealedFile(name, bytes, what);
    if (!file) return std::unexpected(file.error());
    if (::lseek(file->get(), 0, SEEK_SET) != 0) return std::unexpected(sys::ErrnoError("rewind a memory file", errno));
    walls_.push_back(std::move(*file));
    return {};
  };
  // In the order of plan::kBecomePlan and those behind it.
  if (auto done = add("belljar-plan", block, sys::Holds::kData); !done) return done;
  if (auto done = add("belljar-init", LauncherImage(), sys::Holds::kProgram); !done) return done;
  if (auto done = add("belljar-arguments", arguments, sys::Holds::kData); !done) return done;
  walls_.emplace_back(::memfd_create("belljar-words", MFD_CLOEXEC));
  if (!walls_.back().valid()) return std::unexpected(sys::ErrnoError("make a memory file", errno));
  for (const std::string& text : walls.files) {
    if (auto done = add("belljar-file", text, sys::Holds::kData); !done) return done;
  }
  return {};
}

std::string Sandbox::Words() const {
  if (walls_.size() <= plan::kBecomeWords) return {};
  std::array<char, 1024> words{};
  const ssize_t got = ::pread(walls_[plan::kBecomeWords].get(), words.data(), words.size(), 0);
  std::string text(words.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

void Sandbox::FoundInit(pid_t pid) {
  base::UniqueFd found(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!found.valid() || maker_.pid > 0) return;  // Gone already: so is its maker in a moment.
  // SECURITY: it may have ended since it spoke, and its number be somebody else's, whom this would kill.
  if (sys::ParentOf(pid) != init_.pid) return;
  maker_.pid = std::exchange(init_.pid, pid);
  pidfd = std::move(found);
}

Expected<base::UniqueFd> Sandbox::OpenConnection() {
  auto theirs = connection.Open();
  if (!theirs) return theirs;
  // Before anything is sent: a traced command, and an init that another program has started, are told by the kernel's
  // word, not by a pid of their own namespace.
  const int yes = 1;
  if ((plan_->traced || plan_->walls) &&
      ::setsockopt(connection.control.get(), SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0) {
    return std::unexpected(sys::ErrnoError("ask for credentials on the control socket", errno));
  }
  return theirs;
}

Expected<void> Sandbox::MakeInit(base::UniqueFd control_of_init, const std::vector<base::UniqueFd>& id_maps) {
  std::array<int, plan::kMaxSlots> fds{};
  fds.fill(-1);
  fds[plan::kControlSlot] = control_of_init.get();
  fds[plan::kNetworkReadySlot] = janitor_.network_ready();
  fds[plan::kJanitorSlot] = janitor_.pidfd();
  std::size_t count = plan::kFirstExtraSlot;
  for (const base::UniqueFd& fd : cgroup.join_fds()) fds[count++] = fd.get();
  if (cgroup.clone_fd() >= 0) count = plan::kFirstExtraSlot + plan_->cgroup_paths.size();
  for (const base::UniqueFd& fd : id_maps) fds[count++] = fd.get();
  for (const base::UniqueFd& fd : walls_) fds[count++] = fd.get();

  if (by_launcher()) {
    auto started = Launcher::Start(handle_, plan_->block, std::span(fds).first(count), cgroup.clone_fd());
    if (!started) return std::unexpected(started.error());
    init_.pid = started->pid;
    pidfd = std::move(started->pidfd);
    return {};
  }
  const plan::LaunchPlan& plan = plan_->plan();
  const sys::ArgumentArea area = CallerStrings();
  int pidfd_number = -1;
  {
    const sys::BlockedSignals blocked;
    init_.pid = sys::Clone({.flags = plan.clone_flags, .pidfd = &pidfd_number, .cgroup_fd = cgroup.clone_fd()});
    if (init_.pid == 0) jail::RunChild(plan, fds.data(), static_cast<int>(count), {area.begin, area.end});
  }
  if (init_.pid < 0) return std::unexpected(sys::ErrnoError("clone init", errno));
  pidfd.Reset(pidfd_number);
  return {};
}

void Sandbox::Kill() {
  if (waited_ || !pidfd.valid()) return;
  if (plan_->plan().init_is_pid1 != 0 || only_init_is_left) {
    (void)sys::SendSignal(pidfd.get(), SIGKILL);
    return;
  }
  // Killing init would orphan its children. A closed control socket makes it kill them first.
  ::shutdown(connection.control.get(), SHUT_RDWR);
}

void Sandbox::Leave() {
  waited_ = true;
  janitor_.Leave();
}

const Sandbox::Ending& Sandbox::Wait() {
  if (waited_ || init_.pid <= 0) return ending_;
  waited_ = true;
  if (by_launcher()) return ending_ = Launcher::AwaitEnd(handle_);
  const pid_t child = maker_.pid > 0 ? maker_.pid : init_.pid;
  while (::wait4(child, &ending_.status, __WALL, &ending_.usage) < 0 && errno == EINTR) {
  }
  return ending_;
}

Sandbox::~Sandbox() {
  if (init_.pid > 0 && !waited_) {
    Kill();
    Wait();
  }
  if (!private_directory_.empty()) (void)jail::RemoveTree(private_directory_.c_str());
  // Before the cgroups go, so that the janitor wakes up and leaves meanwhile. It removes whatever it still finds.
  janitor_.Dismiss();
  cgroup.Remove();
  if (by_launcher()) ::shutdown(handle_.socket.get(), SHUT_RDWR);  // A forked copy of the caller may have it as well.
}

}  // namespace belljar::launch
