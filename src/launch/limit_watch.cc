#include "launch/limit_watch.h"

#include <algorithm>

namespace belljar::launch {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kForksNs = 20 * kMillisecond;  // v1 tells nobody that a fork was refused since Linux 6.11.
// A guest whose looks don't come back can't be watched. Longer than a look lasts on any host that still works.
constexpr std::uint64_t kLongestLook = 5'000 * kMillisecond;
// Where the processes have more than the limit together, and only what they share may speak for them.
constexpr std::uint64_t kLongestDoubt = 1'000 * kMillisecond;
constexpr std::uint64_t kThreadsNs = 500 * kMillisecond;

}  // namespace

LimitWatch::LimitWatch(const Sandbox& sandbox, const plan::CompiledPlan& plan, const LimitsInForce& limits)
    : sandbox_(sandbox), plan_(plan), limits_(limits), tree_(sandbox, plan, limits), kept_(sandbox, plan, limits) {}

void LimitWatch::Start(std::uint64_t now) {
  if (plan_.counts_cpu_time && !plan_.watched.cpu_time) cpu_check_ = EarliestCpuTime(now, limits_.first().cpu_time_ns);
  if (sandbox_.cgroup.processes_event_fd() >= 0 && sandbox_.cgroup.version() == sys::CgroupVersion::kV1) {
    forks_check_ = now + kForksNs;
  }
  tree_.Start(now);
  kept_.Start(now);
  threads_check_ = std::min(tree_.next(), kept_.next());
}

void LimitWatch::StartCommand(pid_t steward, std::uint64_t now, std::uint64_t cpu_time_ns) {
  command_.Start(steward, now, cpu_time_ns);
  threads_check_ = command_.next();
}

std::uint64_t LimitWatch::next() const { return std::min({cpu_check_, forks_check_, threads_check_}); }

KillReason LimitWatch::Check(std::uint64_t now) {
  KillReason reason = CheckThreads(now);
  if (reason != KillReason::kNone) threads_check_ = kNever;  // Said once, and the run is over.
  if (reason == KillReason::kNone && now >= cpu_check_) reason = CheckCpuTime(now);
  if (reason == KillReason::kNone && now >= forks_check_) {
    forks_check_ = now + kForksNs;
    if (ForkRefused()) reason = KillReason::kProcesses;
  }
  return reason;
}

KillReason LimitWatch::CheckCpuTime(std::uint64_t now) {
  const std::uint64_t used = sandbox_.cgroup.CpuNs();
  if (used >= limits_.first().cpu_time_ns) {
    cpu_check_ = kNever;
    return KillReason::kCpuTime;
  }
  cpu_check_ = EarliestCpuTime(now, limits_.first().cpu_time_ns - used);
  return KillReason::kNone;
}

// Begins those that are due, and looks whether one found something or does not come back.
KillReason LimitWatch::CheckThreads(std::uint64_t now) {
  if (threads_check_ == kNever) return KillReason::kNone;
  const struct {
    Looker& looker;
    LookThread& thread;
  } all[] = {{tree_, tree_thread_}, {kept_, kept_thread_}, {command_, command_thread_}};
  for (const auto& [looker, thread] : all) {
    if (const KillReason reason = thread.reason(); reason != KillReason::kNone) return reason;
    const std::uint64_t since = thread.busy_since();  // kNever is later than any now.
    if (&thread == &tree_thread_ && tree_.doubts() && now > since && now - since > kLongestDoubt) {
      return KillReason::kMemory;
    }
    if (now > since && now - since > kLongestLook) return KillReason::kLostInit;
  }
  if (now < threads_check_) return KillReason::kNone;
  threads_check_ = kNever;
  for (const auto& [looker, thread] : all) {
    // A looker is the thread's once it has one.
    if (!thread.begun() && now >= looker.next() && !thread.Begin()) return KillReason::kLostInit;
    threads_check_ = std::min(threads_check_, thread.begun() ? now + kThreadsNs : looker.next());
  }
  return KillReason::kNone;
}

bool LimitWatch::ForkRefused() {
  if (sandbox_.cgroup.TakeRefusedForks() == 0) return false;
  forks_check_ = kNever;
  return true;
}

void LimitWatch::Stop() {
  tree_thread_.Stop();
  kept_thread_.Stop();
  command_thread_.Stop();
}

}  // namespace belljar::launch
