#include "launch/supervision.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "launch/reception.h"

namespace belljar::launch {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kSetupNs = 30'000 * kMillisecond;     // Set-up may hang on a dead network filesystem.
constexpr std::uint64_t kWallGraceNs = 40 * kMillisecond;     // Init keeps the deadline; the parent is the second line.
constexpr std::uint64_t kStopGraceNs = 1'000 * kMillisecond;  // Before its end takes all others along.
constexpr std::uint64_t kLeaveNs = 2'000 * kMillisecond;      // After that nobody waits for what is killed.
constexpr std::uint64_t kKillGraceNs = 6'000 * kMillisecond;  // For init to kill what it has adopted.
constexpr std::uint64_t kNever = LimitWatch::kNever;
constexpr std::uint64_t kPumpsNs = kMillisecond;  // What is over by then needs no thread for its streams.

}  // namespace

void Supervisor::Watch(int fd, Source source, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.u32 = source}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return;
  if (errno == EEXIST && ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0) return;
  blind_ = true;  // What can't be watched can't be vouched for.
}

// Nothing is moved yet: that is for a thread which may sleep (launch/pumps.h), and which short runs can do without.
void Supervisor::ConnectStreams() {
  const bool capture = options_.streams == StreamMode::kCapture;
  pumps_.Connect(connection_, options_, policy_.limits.output.value_or(capture ? kCapturedOutput : kStreamedOutput));
  for (const pollfd& awaited : pumps_.Awaited()) {
    if (awaited.fd < 0) continue;
    // The bits of poll are those of epoll.
    epoll_event event{.events = static_cast<std::uint32_t>(awaited.events) | EPOLLONESHOT, .data = {.u32 = kStreams}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, awaited.fd, &event) != 0) pumps_due_ = sys::NowNs();
  }
}

void Supervisor::BeginPumps() {
  pumps_due_ = kNever;
  if (pumps_.begun()) return;
  if (!pumps_.Begin()) {
    blind_ = true;
    return;
  }
  Watch(pumps_.news_fd(), kPumpNews, EPOLLIN);
}

// Their threads begin when there is something to look at.
void Supervisor::WatchLimits() {
  const auto fds = limits_.news_fds();
  for (std::size_t i = 0; i < fds.size(); ++i) {
    if (fds[i] >= 0 && !std::exchange(limits_seen_[i], true)) Watch(fds[i], kLimitNews, EPOLLIN | EPOLLONESHOT);
  }
}

// Not traced, it does not run: who asks for a trace relies on it.
void Supervisor::StartTracing(pid_t command) {
  auto tracer = trace::Tracer::Start(command, depth_);
  if (!tracer) {
    observed_.trace_lack = tracer.error().Text();
    return Kill(KillReason::kUntraced);
  }
  tracer_ = std::move(*tracer);
  (void)!::send(connection_.control.get(), "g", 1, MSG_NOSIGNAL);
}

// `command` is a child of its steward, which is one of init.
void Supervisor::WatchCpuTime(pid_t command, std::uint64_t now) {
  if (policy_.limits.cpu_time_ns == kUnlimited) return;
  const pid_t steward = sys::ParentOf(command);
  if (steward > 0 && sys::ParentOf(steward) == where_.init()) {
    limits_.StartCommand(steward, now, policy_.limits.cpu_time_ns);
  } else if (sys::Exists(command)) {  // It has not just ended.
    Kill(KillReason::kLostInit);
  }
}

void Supervisor::HandleReport(const plan::Report& report, base::UniqueFd fd, pid_t sender) {
  switch (report.kind) {
    case plan::ReportKind::kSetupFailed:
      // Stopped on its way: that is not why.
      if (report.error != ECANCELED || observed_.killed == KillReason::kNone) observed_.setup_failed = report;
      return;
    case plan::ReportKind::kExecFailed:
      observed_.exec_failed = report;
      observed_.started = false;
      return;
    case plan::ReportKind::kPrepared: return;
    case plan::ReportKind::kInside:
      if (sandbox_ == nullptr) return;
      Unwatch(sandbox_->pidfd.get());
      sandbox_->FoundInit(sender);
      return Watch(sandbox_->pidfd.get(), kInit, EPOLLIN);
    case plan::ReportKind::kTerminal:
      pumps_.ConnectTerminal(std::move(fd), options_, policy_.limits.output.value_or(kStreamedOutput));
      return BeginPumps();
    case plan::ReportKind::kListener:
      notices_.Listen(std::move(fd));
      Watch(notices_.fd(), kListener, EPOLLIN);
      return;
    case plan::ReportKind::kSocketDiag:
      if (!is_command()) limits_.SeeSockets(std::move(fd));
      return;
    case plan::ReportKind::kTraceMe: return StartTracing(sender);
    case plan::ReportKind::kStarted: {
      observed_.started = true;
      const std::uint64_t now = sys::NowNs();
      setup_deadline_ = kNever;
      if (policy_.limits.wall_ns != kUnlimited) wall_deadline_ = now + policy_.limits.wall_ns + kWallGraceNs;
      if (is_command()) return WatchCpuTime(sender, now);
      limits_.Start(now);
      return;
    }
    case plan::ReportKind::kUncovered:
      if (observed_.killed == KillReason::kNone) {
        observed_.killed = KillReason::kUncovered;
        observed_.uncovered = report.step;
      }
      if (live_ != nullptr) {
        live_->NoteUncovered(report.step);
        if (is_command()) live_->Abandon(KillReason::kUncovered);
      }
      return NoteEnd(report);
    case plan::ReportKind::kSurvivors:
      if (keeps_live()) live_->Note(KillReason::kSurvivors);
      return NoteEnd(report);
    case plan::ReportKind::kEnded:
    case plan::ReportKind::kDeadline:
    case plan::ReportKind::kStopped: return NoteEnd(report);
  }
}

// Exactly one such report is ever sent. What the parent did before it came is the reason, though.
void Supervisor::NoteEnd(const plan::Report& report) {
  observed_.ended = report;
  if (sandbox_ != nullptr) sandbox_->only_init_is_left = true;
  wall_deadline_ = kNever;
}

void Supervisor::ReadReports() {
  for (;;) {
    Received received;
    switch (ReceiveReport(connection_.control.get(), received)) {
      case Reception::kReport: HandleReport(received.report, std::move(received.fd), received.sender); break;
      case Reception::kNothing: return;
      case Reception::kClosed:
        Unwatch(connection_.control.get());
        if (sandbox_ == nullptr) gone_ = true;
        return;
      case Reception::kForeign: blind_ = true; return;  // Whoever that is, it is not init.
    }
  }
}

void Supervisor::Kill(KillReason reason) {
  if (observed_.killed == KillReason::kNone && !observed_.ended) observed_.killed = reason;
  if (keeps_live()) live_->Note(observed_.killed);
  // Init is asked first, because it alone can tell what was used. It may hang in set-up, or not get a CPU.
  if (kill_deadline_ == kNever) connection_.Stop();
  const bool certain = sandbox_ != nullptr && plan_.plan().init_is_pid1 != 0;
  const std::uint64_t grace = certain ? kStopGraceNs : kKillGraceNs;
  kill_deadline_ = std::min(kill_deadline_, sys::NowNs() + grace);
}

// Does what is due; returns when to look again.
std::uint64_t Supervisor::CheckTimers() {
  const std::uint64_t now = sys::NowNs();
  // Where this process was stopped for a while, init may have told of an end in time that nobody has read yet.
  if (now >= std::min(wall_deadline_, setup_deadline_)) ReadReports();
  if (now >= wall_deadline_) {
    wall_deadline_ = kNever;
    Kill(KillReason::kWall);
  }
  if (now >= setup_deadline_) {
    setup_deadline_ = kNever;
    Kill(KillReason::kLostInit);
  }
  if (now >= kill_deadline_) {
    kill_deadline_ = kNever;
    leave_deadline_ = std::min(leave_deadline_, now + kLeaveNs);
    if (sandbox_ != nullptr) {
      (void)sys::SendSignal(sandbox_->pidfd.get(), SIGKILL);
    } else {
      live_->Abandon(KillReason::kLostInit);
    }
  }
  if (now >= leave_deadline_) left_ = true;
  if (now >= pumps_due_) BeginPumps();
  const std::uint64_t next = std::min({wall_deadline_, setup_deadline_, kill_deadline_, leave_deadline_, pumps_due_});
  if (const KillReason reason = limits_.Check(now); reason != KillReason::kNone) Kill(reason);
  WatchLimits();
  return std::min({next, limits_.next(), kill_deadline_});
}

void Supervisor::Handle(Source source, std::uint32_t events) {
  switch (source) {
    case kControl: return ReadReports();
    case kInit:
      gone_ = true;
      Unwatch(sandbox_->pidfd.get());
      return;
    case kStreams:
      if (!pumps_.begun()) pumps_due_ = std::min(pumps_due_, sys::NowNs() + kPumpsNs);
      return;
    case kPumpNews:
      Unwatch(pumps_.news_fd());
      if (pumps_.over_limit()) Kill(KillReason::kOutput);
      return;
    case kLimitNews: return;  // The timers are checked anyway.
    case kCancel: Unwatch(cancel_); return Kill(keeps_live() ? live_->reason() : KillReason::kCancelled);
    case kListener:
      // Hung up: nobody is left who could be refused anything.
      if ((events & EPOLLIN) == 0) return Unwatch(notices_.fd());
      notices_.Answer();
      return;
    case kOom:
      // v1 also tells of the group's removal, v2 of every event of the group.
      if (sandbox_->cgroup.TakeOutOfMemory()) {
        Unwatch(sandbox_->cgroup.oom_event_fd());
        Kill(KillReason::kMemory);
      }
      return;
    case kForks:
      if (limits_.ForkRefused()) {
        Unwatch(sandbox_->cgroup.processes_event_fd());
        Kill(KillReason::kProcesses);
      }
      return;
  }
}

// What belongs to all of it, however many commands it has.
void Supervisor::WatchSandbox() {
  Watch(sandbox_->pidfd.get(), kInit, EPOLLIN);
  if (sandbox_->listener.valid()) {
    notices_.Listen(std::move(sandbox_->listener));
    Watch(notices_.fd(), kListener, EPOLLIN);
  }
  limits_.SeeSockets(std::move(sandbox_->socket_diag));
  const bool v1 = sandbox_->cgroup.version() == sys::CgroupVersion::kV1;
  if (sandbox_->cgroup.oom_event_fd() >= 0) {
    Watch(sandbox_->cgroup.oom_event_fd(), kOom, v1 ? EPOLLIN : EPOLLPRI);
  }
  if (sandbox_->cgroup.processes_event_fd() >= 0) Watch(sandbox_->cgroup.processes_event_fd(), kForks, EPOLLPRI);
}

Finished Supervisor::Run() {
  setup_deadline_ = began_ + kSetupNs;
  Watch(connection_.control.get(), kControl, EPOLLIN);
  if (sandbox_ != nullptr) WatchSandbox();
  if (cancel_ >= 0) Watch(cancel_, kCancel, EPOLLIN);
  if (options_.streams != StreamMode::kTerminal && !keeps_live()) ConnectStreams();
  if (keeps_live()) {
    setup_deadline_ = kNever;
    limits_.AllowToHide([this](pid_t pid) { return live_->IsReady(pid); });
    limits_.Start(began_);
  }
  if (plan_.watched.memory) {
    notices_.AllowSharedMemory(live_ == nullptr ? own_shared_memory_ : live_->shared_memory(),
                               plan_.own_ipc ? Segments::kOwn : Segments::kHosts);
  }

  // The last report says that init alone is left. Its own end, and the sandbox's, is the owner's to wait for.
  while (!gone_ && !observed_.ended && !left_) {
    if (blind_) {
      Kill(KillReason::kLostInit);
      if (sandbox_ == nullptr) {
        live_->Abandon(KillReason::kLostInit);
        break;
      }
      sandbox_->Kill();
      sandbox_->Wait();
      break;
    }
    const std::uint64_t next = CheckTimers();
    timespec timeout{};
    if (next != kNever) {
      const std::uint64_t now = sys::NowNs();
      const std::uint64_t left = next > now ? next - now : 0;
      timeout = {static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
    }
    std::array<epoll_event, 16> events{};
    const int count = ::epoll_pwait2(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                     next == kNever ? nullptr : &timeout, nullptr);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      Handle(static_cast<Source>(event.data.u32), event.events);
    }
  }
  ReadReports();
  limits_.Stop();
  const bool told = observed_.ended || observed_.setup_failed || observed_.exec_failed;
  if (sandbox_ == nullptr && !told) {   // The steward is gone, and with it the sandbox.
    live_->Abandon(KillReason::kNone);  // Init may know why, and its word is read by another thread.
    live_->AwaitEnd();
    if (observed_.killed == KillReason::kNone) observed_.killed = live_->reason();
  }
  FinishStreams();
  Finished finished;
  Finish(finished);
  return finished;
}

Finished Supervise(Sandbox& sandbox, const Supervised& what, trace::TraceDepth depth) {
  return Supervisor(&sandbox, sandbox, sandbox.connection, what, depth, nullptr).Run();
}

void SuperviseLive(Sandbox& sandbox, const plan::CompiledPlan& plan, const Policy& policy, LiveState& live) {
  const RunOptions options{.cancel = &live.end()};
  (void)Supervisor(&sandbox, sandbox, sandbox.connection, {plan, policy, options}, trace::TraceDepth::kOff, &live)
      .Run();
  live.Ended(KillReason::kLostInit);
}

Finished SuperviseCommand(const Sandbox& sandbox, Connection& connection, const Supervised& what, LiveState& live) {
  return Supervisor(nullptr, sandbox, connection, what, trace::TraceDepth::kOff, &live).Run();
}

}  // namespace belljar::launch
