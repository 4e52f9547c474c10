#include "sys/cgroup.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include <fmt/format.h>

#include <belljar/limit.h>

#include "sys/files.h"
#include "sys/proc_text.h"

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
  if (fd.valid()) {
    const ssize_t written = ::write(fd.get(), text.data(), text.size());
    if (written == static_cast<ssize_t>(text.size())) return {};
    if (written >= 0) errno = EIO;  // Half a number is another number.
  }
  return std::unexpected(Failed("write " + text + " to " + path));
}

// The contents of a small file that stays open; empty when it is not.
struct Contents {
  std::array<char, 1024> bytes;
  std::size_t length = 0;
  std::string_view text() const { return {bytes.data(), length}; }
};
Contents ReadAgain(const base::UniqueFd& fd) {
  Contents contents;
  const ssize_t got = ::pread(fd.get(), contents.bytes.data(), contents.bytes.size(), 0);
  if (got > 0) contents.length = static_cast<std::size_t>(got);
  return contents;
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
  if (limits.cpus_milli != kUnlimited || layout.version == CgroupVersion::kV2) cgroup.cpu_ = Below(layout.cpu, name);
  auto limited = layout.version == CgroupVersion::kV2 ? cgroup.LimitV2(limits) : cgroup.LimitV1(limits);
  if (!limited) return std::unexpected(limited.error());
  cgroup.memory_limited_ = limits.memory != kUnlimited;
  cgroup.processes_limited_ = limits.processes != kUnlimited;
  if (auto opened = cgroup.OpenEntry(entry); !opened) return std::unexpected(opened.error());
  if (auto opened = cgroup.OpenEvents(limits); !opened) return std::unexpected(opened.error());
  return cgroup;
}

Expected<void> Cgroup::LimitV1(const CgroupLimits& limits) const {
  if (!memory_.empty() && limits.memory != kUnlimited) {
    const std::string value = std::to_string(limits.memory);
    if (auto done = WriteTo(memory_ + "/memory.limit_in_bytes", value); !done) return done;
    // Absent where the kernel does not account swap; then there is no more to limit.
    const std::string swap = memory_ + "/memory.memsw.limit_in_bytes";
    if (::access(swap.c_str(), F_OK) == 0) {
      if (auto done = WriteTo(swap, value); !done) return done;
    }
    // Buffers of TCP and UDP are counted apart in v1, and only once they have a limit of their own. Absent where the
    // kernel was started without it.
    const std::string sockets = memory_ + "/memory.kmem.tcp.limit_in_bytes";
    if (::access(sockets.c_str(), F_OK) == 0) {
      if (auto done = WriteTo(sockets, std::to_string(limits.memory / 4)); !done) return done;
    }
  }
  if (!pids_.empty() && limits.processes != kUnlimited) {
    if (auto done = WriteTo(pids_ + "/pids.max", std::to_string(limits.processes)); !done) return done;
  }
  if (limits.cpus_milli != kUnlimited) {
    if (auto done = WriteTo(cpu_ + "/cpu.cfs_period_us", std::to_string(kPeriodUs)); !done) return done;
    const std::string quota = std::to_string(limits.cpus_milli * kPeriodUs / 1000);
    if (auto done = WriteTo(cpu_ + "/cpu.cfs_quota_us", quota); !done) return done;
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

Expected<void> Cgroup::LimitV2(const CgroupLimits& limits) const {
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
    if (auto done = WriteTo(cpu_ + "/cpu.max", quota); !done) return done;
  }
  return {};
}

// All that is read while it runs or at its end is opened at the start, which may be ahead of the run.
Expected<void> Cgroup::OpenEvents(const CgroupLimits& limits) {
  const bool v2 = version_ == CgroupVersion::kV2;
  const auto open = [](base::UniqueFd& fd, const std::string& path) -> Expected<void> {
    fd.Reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return std::unexpected(Failed("open " + path));
    return {};
  };
  if (!pids_.empty()) {
    // Not there before Linux 6.1: then a watcher's count has to do.
    pids_peak_.Reset(::open((pids_ + "/pids.peak").c_str(), O_RDONLY | O_CLOEXEC));
    if (auto opened = open(pids_events_, pids_ + "/pids.events"); !opened) return opened;
    (void)TakeRefusedForks();
  }
  if (memory_.empty()) return {};
  // Likewise: memory.peak came with 5.19.
  memory_peak_.Reset(
      ::open((memory_ + (v2 ? "/memory.peak" : "/memory.max_usage_in_bytes")).c_str(), O_RDONLY | O_CLOEXEC));
  if (auto opened = open(oom_control_, memory_ + (v2 ? "/memory.events" : "/memory.oom_control")); !opened)
    return opened;
  if (v2 || limits.memory == kUnlimited) return {};
  oom_event_.Reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!oom_event_.valid()) return std::unexpected(Failed("watch " + memory_));
  return WriteTo(memory_ + "/cgroup.event_control", fmt::format("{} {}", oom_event_.get(), oom_control_.get()));
}

bool Cgroup::TakeOutOfMemory() const {
  std::uint64_t count = 0;
  if (version_ == CgroupVersion::kV1) (void)!::read(oom_event_.get(), &count, sizeof count);
  const Contents now = ReadAgain(oom_control_);
  return KeyedNumber(now.text(), "oom_kill") > 0 || KeyedNumber(now.text(), "under_oom") > 0;
}

std::uint64_t Cgroup::TakeRefusedForks() const { return KeyedNumber(ReadAgain(pids_events_).text(), "max"); }

std::uint64_t Cgroup::CpuNs() const {
  if (cpuacct_.empty()) return 0;
  if (version_ == CgroupVersion::kV2) return ReadKeyed(cpuacct_ + "/cpu.stat", "usage_usec") * 1000;
  return FirstNumber(ReadSmallFile(cpuacct_ + "/cpuacct.usage", 64).value_or(""));
}

Expected<Cgroup::Lowered> Cgroup::Lower(const CgroupLimits& limits) const {
  if (limits.cpus_milli != kUnlimited && cpu_.empty()) {
    return std::unexpected(Error{.step = "lower limits.cpus",
                                 .message = "the sandbox was made without a cgroup for it",
                                 .hint = "give it some limits.cpus from the start"});
  }
  const bool v2 = version_ == CgroupVersion::kV2;
  const auto limited = v2 ? LimitV2(limits) : LimitV1(limits);
  // v1 does not set a limit below what is in use; v2 does, and ends processes until it holds.
  if (!limited && limited.error().code == EBUSY) return Lowered::kMemoryInUse;
  if (!limited) return std::unexpected(limited.error());
  const std::uint64_t tasks = pids_.empty() ? 0 : FirstNumber(ReadSmallFile(pids_ + "/pids.current", 64).value_or(""));
  return tasks > limits.processes ? Lowered::kProcessesInUse : Lowered::kDone;
}

CgroupUsage Cgroup::Usage() const {
  CgroupUsage usage{.cpu_ns = CpuNs()};
  usage.memory_peak = FirstNumber(ReadAgain(memory_peak_).text());
  usage.oom_kills = KeyedNumber(ReadAgain(oom_control_).text(), "oom_kill");
  usage.processes_peak = FirstNumber(ReadAgain(pids_peak_).text());
  usage.processes_refused = KeyedNumber(ReadAgain(pids_events_).text(), "max");
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
