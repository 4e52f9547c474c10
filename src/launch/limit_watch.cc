#include "launch/limit_watch.h"

#include <unistd.h>

#include <algorithm>

#include "sys/process.h"

namespace belljar::launch {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kTreeNs = 10 * kMillisecond;
constexpr std::uint64_t kDirectoryNs = 50 * kMillisecond;
constexpr std::uint64_t kForksNs = 20 * kMillisecond;  // v1 tells nobody that a fork was refused since Linux 6.11.
constexpr std::uint64_t kUncountedNs = 100 * kMillisecond;
constexpr int kMostUnseen = 10;

}  // namespace

LimitWatch::LimitWatch(const Sandbox& sandbox, const plan::CompiledPlan& plan, const Limits& limits)
    : sandbox_(sandbox),
      plan_(plan),
      limits_(limits),
      uncounted_(sandbox.init(), plan.own_network ? Sockets::kOwn : Sockets::kShared, limits.memory) {}

void LimitWatch::Start(std::uint64_t now) {
  if (plan_.counts_cpu_time) cpu_check_ = now + kMillisecond;
  if (plan_.watched.memory || plan_.watched.processes) tree_check_ = now + kTreeNs;
  if (plan_.watched.disk) disk_check_ = now + kDirectoryNs;
  if (plan_.watches_uncounted) uncounted_check_ = now + kUncountedNs;
  if (sandbox_.cgroup.processes_event_fd() >= 0 && sandbox_.cgroup.version() == sys::CgroupVersion::kV1) {
    forks_check_ = now + kForksNs;
  }
}

std::uint64_t LimitWatch::next() const {
  return std::min({cpu_check_, tree_check_, disk_check_, uncounted_check_, forks_check_});
}

KillReason LimitWatch::Check(std::uint64_t now) {
  KillReason reason = KillReason::kNone;
  if (now >= cpu_check_) reason = CheckCpuTime(now);
  if (reason == KillReason::kNone && now >= tree_check_) reason = CheckTree(now);
  if (reason == KillReason::kNone && now >= disk_check_) reason = CheckDirectory(now);
  if (reason == KillReason::kNone && now >= uncounted_check_) reason = CheckUncounted(now);
  if (reason == KillReason::kNone && now >= forks_check_) {
    forks_check_ = now + kForksNs;
    if (ForkRefused()) reason = KillReason::kProcesses;
  }
  return reason;
}

KillReason LimitWatch::CheckCpuTime(std::uint64_t now) {
  std::uint64_t used = 0;
  if (plan_.watched.cpu_time) {
    const auto use = LookAtTree(sandbox_.init());
    if (!use) {
      cpu_check_ = kNever;
      return KillReason::kLostInit;
    }
    used = use->cpu_ns;
    peak_.cpu_ns = std::max(peak_.cpu_ns, used);
  } else {
    used = sandbox_.cgroup.CpuNs();
  }
  if (used >= limits_.cpu_time_ns) {
    cpu_check_ = kNever;
    return KillReason::kCpuTime;
  }
  // The earliest moment at which it can be used up, were all CPUs busy: no polling, and exact in the end.
  const auto cpus = static_cast<std::uint64_t>(std::max<long>(1, ::sysconf(_SC_NPROCESSORS_ONLN)));
  cpu_check_ = now + std::max(kMillisecond, (limits_.cpu_time_ns - used) / cpus);
  return KillReason::kNone;
}

KillReason LimitWatch::CheckTree(std::uint64_t now) {
  const auto seen = LookAtTree(sandbox_.init());
  if (!seen) {
    tree_check_ = kNever;
    return KillReason::kLostInit;
  }
  const TreeUse& use = *seen;
  peak_.tasks = std::max(peak_.tasks, use.tasks);
  peak_.memory_bytes = std::max(peak_.memory_bytes, use.memory_bytes);
  peak_.cpu_ns = std::max(peak_.cpu_ns, use.cpu_ns);
  tree_check_ = now + kTreeNs;
  if (plan_.watched.processes && use.tasks > limits_.processes) return KillReason::kProcesses;
  if (!plan_.watched.memory || use.memory_bytes <= limits_.memory) return KillReason::kNone;
  return ProportionalMemory(sandbox_.init()) > limits_.memory ? KillReason::kMemory : KillReason::kNone;
}

KillReason LimitWatch::CheckDirectory(std::uint64_t now) {
  const DirectoryUse use = LookAtDirectory(plan_.private_directory, limits_.disk, limits_.files);
  disk_peak_ = std::max(disk_peak_, use.bytes);
  disk_check_ = now + kDirectoryNs;
  const bool over = use.bytes >= limits_.disk || use.files > limits_.files || !use.seen_all;
  return over ? KillReason::kDisk : KillReason::kNone;
}

KillReason LimitWatch::CheckUncounted(std::uint64_t now) {
  const auto seen = uncounted_.Look(now);
  // What others hold makes the look longer: a tenth of one CPU at most goes into it, or half while memory is lost.
  const std::uint64_t then = sys::NowNs();
  const std::uint64_t pause = uncounted_.hurries() ? then - now : std::max(kUncountedNs, 9 * (then - now));
  uncounted_check_ = then + pause;
  if (!seen) {
    // An init that is about to be gone has no network to look at any more: not to be taken for one that hides.
    return ++unseen_ >= kMostUnseen ? KillReason::kLostInit : KillReason::kNone;
  }
  unseen_ = 0;
  return uncounted_.Judge(*seen);
}

bool LimitWatch::ForkRefused() {
  if (sandbox_.cgroup.TakeRefusedForks() == 0) return false;
  forks_check_ = kNever;
  return true;
}

}  // namespace belljar::launch
