#include "sys/cgroup.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <ctime>

#include <fmt/format.h>

#include <belljar/limit.h>

#include "sys/files.h"

namespace belljar::sys {
namespace {

constexpr std::uint64_t kPeriodUs = 100'000;

Error Failed(const std::string& step) {
  return {.step = step,
          .message = std::strerror(errno),
          .hint = "'belljar doctor' shows which cgroups this user may use",
          .code = errno};
}

Expected<void> WriteTo(const std::string& path, const std::string& text) {
  const base::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid() || ::write(fd.get(), text.data(), text.size()) < 0) {
    return std::unexpected(Failed("write " + text + " to " + path));
  }
  return {};
}

std::uint64_t ReadNumber(const std::string& path) {
  const auto text = ReadSmallFile(path, 64).value_or("");
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The number behind `key` in the text of a flat keyed file.
std::uint64_t KeyedNumber(std::string_view text, std::string_view key) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ' ') continue;
    std::uint64_t value = 0;
    std::from_chars(line.data() + key.size() + 1, line.data() + line.size(), value);
    return value;
  }
  return 0;
}

std::uint64_t ReadKeyed(const std::string& path, std::string_view key) {
  return KeyedNumber(ReadSmallFile(path, 4096).value_or(""), key);
}

std::string Below(const std::string& parent, const std::string& name) {
  return parent.empty() ? std::string() : parent + "/" + name;
}

}  // namespace

std::vector<std::string> Cgroup::Paths(const CgroupLayout& layout, const std::string& name,
                                       const CgroupLimits& limits) {
  std::vector<std::string> paths;
  const std::string* const wanted[] = {&layout.memory, &layout.pids, limits.cpu_time ? &layout.cpuacct : nullptr,
                                       limits.cpus_milli == kUnlimited ? nullptr : &layout.cpu};
  for (const std::string* parent : wanted) {
    if (parent == nullptr || parent->empty()) continue;
    std::string path = Below(*parent, name);
    if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(std::move(path));
  }
  return paths;
}

Expected<Cgroup> Cgroup::Create(const CgroupLayout& layout, const std::string& name, const CgroupLimits& limits,
                                CgroupEntry entry) {
  Cgroup cgroup;
  cgroup.version_ = layout.version;
  if (layout.version == CgroupVersion::kV2) {
    // May fail where someone else's rules enabled it already; what counts is whether the limits can be set below.
    for (const char* controllers : {"+memory +pids", "+cpu"}) {
      if (!WriteTo(layout.memory + "/cgroup.subtree_control", controllers)) continue;
    }
  }
  for (std::string& path : Paths(layout, name, limits)) {
    if (::mkdir(path.c_str(), 0755) != 0) return std::unexpected(Failed("make cgroup " + path));
    cgroup.paths_.push_back(std::move(path));
  }
  cgroup.memory_ = Below(layout.memory, name);
  cgroup.pids_ = Below(layout.pids, name);
  if (limits.cpu_time || layout.version == CgroupVersion::kV2) cgroup.cpuacct_ = Below(layout.cpuacct, name);
  auto limited =
      layout.version == CgroupVersion::kV2 ? cgroup.LimitV2(limits) : cgroup.LimitV1(limits, Below(layout.cpu, name));
  if (!limited) return std::unexpected(limited.error());
  if (auto opened = cgroup.OpenEntry(entry); !opened) return std::unexpected(opened.error());
  if (auto opened = cgroup.OpenEvents(limits); !opened) return std::unexpected(opened.error());
  return cgroup;
}

Expected<void> Cgroup::LimitV1(const CgroupLimits& limits, const std::string& cpu) {
  if (!memory_.empty() && limits.memory != kUnlimited) {
    const std::string value = std::to_string(limits.memory);
    if (auto done = WriteTo(memory_ + "/memory.limit_in_bytes", value); !done) return done;
    // Absent where the kernel does not account swap; then there is no more to limit.
    const std::string swap = memory_ + "/memory.memsw.limit_in_bytes";
    if (::access(swap.c_str(), F_OK) == 0) {
      if (auto done = WriteTo(swap, value); !done) return done;
    }
  }
  if (!pids_.empty() && limits.processes != kUnlimited) {
    if (auto done = WriteTo(pids_ + "/pids.max", std::to_string(limits.processes)); !done) return done;
  }
  if (limits.cpus_milli != kUnlimited) {
    if (auto done = WriteTo(cpu + "/cpu.cfs_period_us", std::to_string(kPeriodUs)); !done) return done;
    const std::string quota = std::to_string(limits.cpus_milli * kPeriodUs / 1000);
    if (auto done = WriteTo(cpu + "/cpu.cfs_quota_us", quota); !done) return done;
  }
  return {};
}

Expected<void> Cgroup::OpenEntry(CgroupEntry entry) {
  if (version_ == CgroupVersion::kV2 && entry == CgroupEntry::kClone) {
    directory_.Reset(::open(memory_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!directory_.valid()) return std::unexpected(Failed("open " + memory_));
    return {};
  }
  const char* const file = version_ == CgroupVersion::kV2 ? "/cgroup.procs" : "/tasks";
  for (const std::string& path : paths_) {
    join_.emplace_back(::open((path + file).c_str(), O_WRONLY | O_CLOEXEC));
    if (!join_.back().valid()) return std::unexpected(Failed("open " + path + file));
  }
  return {};
}

Expected<void> Cgroup::LimitV2(const CgroupLimits& limits) {
  if (limits.memory != kUnlimited) {
    if (auto done = WriteTo(memory_ + "/memory.max", std::to_string(limits.memory)); !done) return done;
    const std::string swap = memory_ + "/memory.swap.max";
    if (::access(swap.c_str(), F_OK) == 0) {
      if (auto done = WriteTo(swap, "0"); !done) return done;
    }
    if (auto done = WriteTo(memory_ + "/memory.oom.group", "1"); !done) return done;
  }
  if (limits.processes != kUnlimited) {
    if (auto done = WriteTo(pids_ + "/pids.max", std::to_string(limits.processes)); !done) return done;
  }
  if (limits.cpus_milli != kUnlimited) {
    const std::string quota = fmt::format("{} {}", limits.cpus_milli * kPeriodUs / 1000, kPeriodUs);
    if (auto done = WriteTo(memory_ + "/cpu.max", quota); !done) return done;
  }
  return {};
}

Expected<void> Cgroup::OpenEvents(const CgroupLimits& limits) {
  if (!pids_.empty() && limits.processes != kUnlimited) {
    pids_events_.Reset(::open((pids_ + "/pids.events").c_str(), O_RDONLY | O_CLOEXEC));
    if (!pids_events_.valid()) return std::unexpected(Failed("open " + pids_ + "/pids.events"));
    (void)TakeRefusedForks();
  }
  if (memory_.empty() || limits.memory == kUnlimited) return {};
  if (version_ == CgroupVersion::kV2) {
    oom_event_.Reset(::open((memory_ + "/memory.events").c_str(), O_RDONLY | O_CLOEXEC));
    if (!oom_event_.valid()) return std::unexpected(Failed("open " + memory_ + "/memory.events"));
    return {};
  }
  oom_event_.Reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  oom_control_.Reset(::open((memory_ + "/memory.oom_control").c_str(), O_RDONLY | O_CLOEXEC));
  if (!oom_event_.valid() || !oom_control_.valid()) return std::unexpected(Failed("watch " + memory_));
  return WriteTo(memory_ + "/cgroup.event_control", fmt::format("{} {}", oom_event_.get(), oom_control_.get()));
}

std::uint64_t Cgroup::TakeRefusedForks() const {
  char text[256];
  const ssize_t length = ::pread(pids_events_.get(), text, sizeof text, 0);
  return length > 0 ? KeyedNumber({text, static_cast<std::size_t>(length)}, "max") : 0;
}

std::uint64_t Cgroup::CpuNs() const {
  if (cpuacct_.empty()) return 0;
  if (version_ == CgroupVersion::kV2) return ReadKeyed(cpuacct_ + "/cpu.stat", "usage_usec") * 1000;
  return ReadNumber(cpuacct_ + "/cpuacct.usage");
}

CgroupUsage Cgroup::Usage() const {
  CgroupUsage usage{.cpu_ns = CpuNs()};
  const bool v2 = version_ == CgroupVersion::kV2;
  if (!memory_.empty()) {
    usage.memory_peak = ReadNumber(memory_ + (v2 ? "/memory.peak" : "/memory.max_usage_in_bytes"));
    usage.oom_kills = ReadKeyed(memory_ + (v2 ? "/memory.events" : "/memory.oom_control"), "oom_kill");
  }
  if (!pids_.empty()) {
    usage.processes_peak = ReadNumber(pids_ + "/pids.peak");
    usage.processes_refused = ReadKeyed(pids_ + "/pids.events", "max");
  }
  return usage;
}

bool Cgroup::Remove() {
  bool all = true;
  for (const std::string& path : paths_) {
    // The kernel lets go of the last process a moment after it was reaped.
    for (int round = 0; round < 500 && ::rmdir(path.c_str()) != 0 && errno == EBUSY; ++round) {
      const timespec pause{0, 200'000};
      ::nanosleep(&pause, nullptr);
    }
    all = all && ::access(path.c_str(), F_OK) != 0;
  }
  paths_.clear();
  return all;
}

Cgroup::~Cgroup() { Remove(); }

}  // namespace belljar::sys
