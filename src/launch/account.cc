#include "launch/account.h"

#include <algorithm>

namespace belljar::launch {
namespace {

std::uint64_t Nanoseconds(const timeval& time) {
  return (static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(time.tv_usec)) * 1000;
}

}  // namespace

Usage Account(const Observed& observed, const Sandbox::Ending& ending, const sys::CgroupUsage& counted,
              const LimitWatch& watch) {
  const bool told = observed.ended.has_value();
  const std::uint64_t cpu_ns =
      told ? observed.ended->cpu_ns : Nanoseconds(ending.usage.ru_utime) + Nanoseconds(ending.usage.ru_stime);
  const std::uint64_t largest =
      told ? observed.ended->memory_peak : static_cast<std::uint64_t>(ending.usage.ru_maxrss) * 1024;
  const TreeUse& peak = watch.peak();
  Usage usage;
  usage.cpu_ms = std::max({counted.cpu_ns, cpu_ns, peak.cpu_ns, watch.commands_cpu_ns()}) / 1'000'000;
  usage.memory_peak_bytes = counted.memory_peak != 0 ? counted.memory_peak : std::max(peak.memory_bytes, largest);
  // Init is ours and not counted; where only a watcher looks, a short run is over before it does.
  usage.processes_peak = counted.processes_peak > 0 ? counted.processes_peak - 1 : peak.tasks;
  if (usage.processes_peak == 0 && observed.started) usage.processes_peak = 1;
  usage.disk_bytes = watch.disk_peak();
  if (told) {
    for (const plan::DiskUse& disk : observed.ended->disk) usage.disk_bytes += disk.used_bytes;
  }
  return usage;
}

}  // namespace belljar::launch
