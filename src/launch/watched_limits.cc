#include "launch/watched_limits.h"

#include <unistd.h>

#include <algorithm>

#include "sys/process.h"

namespace belljar::launch {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kTreeNs = 10 * kMillisecond;
constexpr std::uint64_t kDirectoryNs = 50 * kMillisecond;
constexpr std::uint64_t kUncountedNs = 100 * kMillisecond;
constexpr int kMostUnseen = 10;

}  // namespace

std::uint64_t EarliestCpuTime(std::uint64_t now, std::uint64_t left) {
  const auto cpus = static_cast<std::uint64_t>(std::max<long>(1, ::sysconf(_SC_NPROCESSORS_ONLN)));
  return now + std::max(kMillisecond, left / cpus);
}

void TreeLimits::Start(std::uint64_t now) {
  if (watched_.memory || watched_.processes) {
    next_ = now + kTreeNs;
  } else if (watched_.cpu_time) {
    next_ = EarliestCpuTime(now, limits_.first().cpu_time_ns);
  }
}

KillReason TreeLimits::Look(std::uint64_t now) {
  const auto seen = LookAtTree(sandbox_.init());
  if (!seen) return KillReason::kLostInit;
  const TreeUse& use = *seen;
  peak_.tasks = std::max(peak_.tasks, use.tasks);
  peak_.memory_bytes = std::max(peak_.memory_bytes, use.memory_bytes);
  peak_.cpu_ns = std::max(peak_.cpu_ns, use.cpu_ns);
  if (watched_.cpu_time && use.cpu_ns >= limits_.first().cpu_time_ns) return KillReason::kCpuTime;
  if (watched_.processes && use.tasks > limits_.processes() + own_tasks_) return KillReason::kProcesses;
  if (watched_.memory && use.memory_bytes > limits_.memory()) {
    doubts_ = true;
    if (ProportionalMemory(sandbox_.init()) > limits_.memory()) return KillReason::kMemory;
    doubts_ = false;
  }
  const bool often = watched_.memory || watched_.processes;
  next_ = often ? sys::NowNs() + kTreeNs : EarliestCpuTime(now, limits_.first().cpu_time_ns - use.cpu_ns);
  return KillReason::kNone;
}

void CommandTime::Start(pid_t steward, std::uint64_t now, std::uint64_t limit_ns) {
  steward_ = steward;
  limit_ns_ = limit_ns;
  next_ = EarliestCpuTime(now, limit_ns);
}

KillReason CommandTime::Look(std::uint64_t now) {
  const auto used = CpuTimeOfTree(steward_);
  if (!used) {
    next_ = kNever;
    return sys::Exists(steward_) ? KillReason::kLostInit : KillReason::kNone;  // Hidden, or gone.
  }
  peak_ns_ = std::max(peak_ns_, *used);
  if (*used >= limit_ns_) return KillReason::kCpuTime;
  next_ = EarliestCpuTime(now, limit_ns_ - *used);
  return KillReason::kNone;
}

KeptLimits::KeptLimits(const Sandbox& sandbox, const plan::CompiledPlan& plan, const LimitsInForce& limits)
    : sandbox_(sandbox),
      plan_(plan),
      limits_(limits),
      uncounted_(plan.plan().live != 0 ? Above::kStewards : Above::kInit,
                 plan.own_network ? Sockets::kOwn : Sockets::kShared) {}

void KeptLimits::Start(std::uint64_t now) {
  uncounted_.SetInit(sandbox_.init());
  if (plan_.watched.disk) disk_check_ = now + kDirectoryNs;
  // Both unlimited is more than fits.
  const Limits& limits = limits_.first();
  const double most = static_cast<double>(limits.processes) * static_cast<double>(limits.open_files);
  if (most < static_cast<double>(kUnlimited)) uncounted_.SetMostOpen(static_cast<std::uint64_t>(most));
  if (plan_.watches_uncounted) uncounted_check_ = now + kUncountedNs;
}

KillReason KeptLimits::Look(std::uint64_t now) {
  KillReason reason = KillReason::kNone;
  if (now >= disk_check_) reason = LookAtDisk(now);
  if (reason == KillReason::kNone && now >= uncounted_check_) reason = LookAtUncounted(sys::NowNs());
  return reason;
}

KillReason KeptLimits::LookAtDisk(std::uint64_t now) {
  const DirectoryUse use = LookAtDirectory(plan_.private_directory, limits_.first().disk, limits_.first().files);
  disk_peak_ = std::max(disk_peak_, use.bytes);
  disk_check_ = now + kDirectoryNs;
  const bool over = use.bytes >= limits_.first().disk || use.files > limits_.first().files || !use.seen_all;
  return over ? KillReason::kDisk : KillReason::kNone;
}

KillReason KeptLimits::LookAtUncounted(std::uint64_t now) {
  uncounted_.SetMemoryLimit(limits_.memory());
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

}  // namespace belljar::launch
