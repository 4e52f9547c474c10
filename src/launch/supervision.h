// launch/supervision.h: the one thread that stays with a sandbox, or with one command of a live one. What it does while
// it waits is in supervisor.cc, what it makes of the end in finish.cc.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <memory>

#include "launch/limit_watch.h"
#include "launch/notices.h"
#include "launch/pumps.h"
#include "launch/supervisor.h"
#include "sys/process.h"
#include "trace/tracer.h"

namespace belljar::launch {

class Supervisor {
 public:
  // Without a sandbox of its own it is about one command of a live one, `where`, whose own supervisor has all that they
  // share.
  Supervisor(Sandbox* sandbox, const Sandbox& where, Connection& connection, const Supervised& what,
             trace::TraceDepth depth, LiveState* live)
      : sandbox_(sandbox),
        where_(where),
        connection_(connection),
        live_(live),
        plan_(what.plan),
        policy_(what.policy),
        options_(what.options),
        cancel_(what.cancel < 0 && what.options.cancel != nullptr ? what.options.cancel->fd() : what.cancel),
        depth_(depth),
        own_limits_(what.policy.limits),
        limits_(where, what.plan, live == nullptr ? own_limits_ : live->limits()),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)),
        own_shared_memory_(what.policy.limits.memory) {}

  Finished Run();

 private:
  bool is_command() const { return sandbox_ == nullptr; }
  bool keeps_live() const { return live_ != nullptr && sandbox_ != nullptr; }
  void WatchSandbox();
  enum Source : std::uint32_t { kControl, kInit, kStreams, kPumpNews, kLimitNews, kCancel, kListener, kOom, kForks };

  void Watch(int fd, Source source, std::uint32_t events);
  void Unwatch(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }
  void ConnectStreams();
  void BeginPumps();
  void WatchLimits();
  void Handle(Source source, std::uint32_t events);
  void ReadReports();
  void HandleReport(const plan::Report& report, base::UniqueFd fd, pid_t sender);
  void NoteEnd(const plan::Report& report);
  void StartTracing(pid_t command);
  void WatchCpuTime(pid_t command, std::uint64_t now);
  void Kill(KillReason reason);
  std::uint64_t CheckTimers();
  void FinishStreams();
  sys::CgroupUsage LookAtLimits();
  void Finish(Finished& finished);

  Sandbox* sandbox_;
  const Sandbox& where_;
  Connection& connection_;
  LiveState* live_;
  const plan::CompiledPlan& plan_;
  const Policy& policy_;
  const RunOptions& options_;
  int cancel_;  // Readable when that is wanted; -1: never.
  trace::TraceDepth depth_;
  LimitsInForce own_limits_;  // But for those of a live sandbox.
  LimitWatch limits_;
  std::array<bool, 3> limits_seen_{};  // Whether their threads are listened to.
  base::UniqueFd epoll_;
  Pumps pumps_;
  SharedMemoryBudget own_shared_memory_;
  Notices notices_;
  std::unique_ptr<trace::Tracer> tracer_;
  Observed observed_;
  bool gone_ = false;  // Init; or the steward, which shows by its socket.
  bool blind_ = false;
  bool left_ = false;  // Killed, and not gone.
  std::uint64_t began_ = sys::NowNs();
  std::uint64_t wall_deadline_ = LimitWatch::kNever;
  std::uint64_t setup_deadline_ = LimitWatch::kNever;
  std::uint64_t kill_deadline_ = LimitWatch::kNever;
  std::uint64_t leave_deadline_ = LimitWatch::kNever;
  std::uint64_t pumps_due_ = LimitWatch::kNever;
};

}  // namespace belljar::launch
