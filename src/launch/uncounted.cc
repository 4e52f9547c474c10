#include "launch/uncounted.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "plan/bounds.h"
#include "sys/files.h"
#include "sys/proc_text.h"
#include "sys/process.h"
#include "sys/socket_diag.h"

namespace belljar::launch {
namespace {

constexpr std::uint64_t kSocketBytes = 4096;  // The socket itself and a packet, where it was made by no process.
constexpr std::uint64_t kLockBytes = 256;     // struct file_lock is 200 to 216.
constexpr std::uint64_t kMostLocks = 16'384;
constexpr std::uint64_t kMostWaitedFor = 131'072;  // As many as default limits allow; some 20 MB.
constexpr std::uint64_t kMostSockets = 32'768;     // More take longer to look at than a look may last.
constexpr std::uint64_t kTimeWaitBytes = 288;
constexpr std::uint64_t kCrowd = 16;           // Part of what is the host's before it is short of it.
constexpr std::uint64_t kMostPolled = 65'536;  // A host of 512 MiB lets one user have twice as many.
// All that one user namespace may have is 8,192, but each descriptor of an instance tells of all of them again, and the
// kernel takes 2 µs for each.
constexpr std::uint64_t kMostMarks = 16 * 8192;
constexpr std::uint64_t kMostInFlight = 1'024;
constexpr std::uint64_t kListNs = 300'000'000;  // For one list of sockets.
constexpr std::uint64_t kLookNs = 5'000'000;    // At open files, at one look.
// Where only the payload of TCP is told: the least that the kernel spends on a byte of it, which may have a packet of
// its own.
constexpr std::uint64_t kPerTcpByte = 1280;
// The guest's open files are looked through when the kernel has grown by this, all of the host; and after this time all
// the same, as what one guest takes may be hidden by what another gives back.
constexpr std::uint64_t kGrowth = 16ULL << 20;
constexpr std::uint64_t kSweepNs = 1'000'000'000;
constexpr int kMostHidden = 3;  // Sweeps: somebody may look away from what it is, as while it executes another program.
constexpr std::uint64_t kExecNs = 2'000'000'000;  // Longer than a command takes to its exec.
constexpr std::uint64_t kBornTicks = 2;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
struct Free {
  void operator()(char* text) const { std::free(text); }
};

// Calls `visit(line)` for each line until it returns false. These files can be long: never all of one in memory.
// False when there is no such file.
template <typename Visit>
bool ForEachLine(const std::string& path, Visit visit) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "re"));
  if (file == nullptr) return false;
  char* raw = nullptr;
  std::size_t room = 0;
  for (ssize_t length = 0; (length = ::getline(&raw, &room, file.get())) > 0;) {
    if (!visit(std::string_view(raw, static_cast<std::size_t>(length)))) break;
  }
  const std::unique_ptr<char, Free> owner(raw);
  return true;
}

// The last of three numbers, as in tcp_rmem.
std::uint64_t LastNumber(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const std::size_t before = text.find_last_of(" \t");
  return sys::FirstNumber(before == std::string_view::npos ? text : text.substr(before + 1));
}

// What one socket can hold at most: the largest buffers that the host lets anybody ask for, which are doubled, or gives
// to TCP by itself.
std::uint64_t LargestSocket() {
  constexpr std::uint64_t kUnknown = 16ULL << 20;  // Not shown in network namespaces before Linux 6.
  static const std::uint64_t largest = [] {
    std::uint64_t bytes = 1;
    for (const char* way : {"rmem", "wmem"}) {
      const auto asked = sys::ReadSmallFile(fmt::format("/proc/sys/net/core/{}_max", way), 64);
      const auto given = sys::ReadSmallFile(fmt::format("/proc/sys/net/ipv4/tcp_{}", way), 64);
      bytes += std::max(asked ? 2 * sys::FirstNumber(*asked) : kUnknown, given ? LastNumber(*given) : kUnknown);
    }
    return bytes;
  }();
  return largest;
}

// What a protocol may have in all network namespaces together before the kernel saves on it.
struct HostPool {
  std::uint64_t bytes = 0;
  bool IsShort(std::uint64_t used_pages) const {
    return bytes != 0 && used_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) > bytes;
  }
};

// The first of three numbers of pages. Not shown where /proc/sys is not the host's: then nobody can say.
HostPool PoolOf(const char* protocol) {
  const auto text = sys::ReadSmallFile(fmt::format("/proc/sys/net/ipv4/{}_mem", protocol), 64);
  return {text ? sys::FirstNumber(*text) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0};
}

std::uint64_t QueuedTcpBytes(std::string_view line) {
  return std::min(sys::QueuedBytes(line) * kPerTcpByte, LargestSocket());
}

// A quarter of what all of the host may have.
std::uint64_t MostOrphans() {
  static const std::uint64_t most = sys::MostTcpOrphans() / 4;
  return most;
}

bool TooMany(const Uncounted& found) {
  return found.locks > kMostLocks || found.polled > kMostPolled || found.marks > kMostMarks ||
         found.waited_for > kMostWaitedFor || found.open > plan::kMostOpen || found.in_flight > kMostInFlight;
}

// How many descriptors a process has. Where the kernel does not say (before Linux 6.2), half as many as it has room
// for, which it doubles.
std::uint64_t OpenFiles(pid_t pid) {
  const auto look = [](const std::string& process) {
    struct stat status{};
    if (::stat((process + "/fd").c_str(), &status) == 0 && status.st_size > 0)
      return static_cast<std::uint64_t>(status.st_size);
    return sys::TabbedNumber(sys::ReadSmallFile(process + "/status", 16384).value_or(""), "FDSize:") / 2;
  };
  const std::string process = fmt::format("/proc/{}", pid);
  if (const std::uint64_t open = look(process); open > 0) return open;
  // Its first thread has ended, or it has none.
  constexpr std::size_t kMost = 1U << 20;
  for (const std::string& thread : sys::ListDirectory(process + "/task", kMost).value_or(std::vector<std::string>())) {
    if (const std::uint64_t open = look(process + "/task/" + thread); open > 0) return open;
  }
  return 0;
}

}  // namespace

bool UncountedWatch::LookAtSockets(Uncounted& seen) const {
  const std::string net = fmt::format("/proc/{}/net/", init_);
  const auto summary = sys::ReadSmallFile(net + "sockstat", 4096);
  if (!summary) return false;
  const std::uint64_t count = sys::KeyedNumber(*summary, "sockets: used");
  seen.sockets = count;
  std::uint64_t& bytes = seen.socket_bytes;
  bytes = sys::SocketNumber(*summary, "TCP", "tw") * kTimeWaitBytes;
  static const HostPool tcp_pool = PoolOf("tcp");
  static const HostPool udp_pool = PoolOf("udp");
  const bool short_of_tcp = tcp_pool.IsShort(sys::SocketNumber(*summary, "TCP", "mem"));
  const bool short_of_udp = udp_pool.IsShort(sys::SocketNumber(*summary, "UDP", "mem"));
  // The lists are slow to read, whoever's they are: not before there is something to find.
  const bool few = count <= enough_ / LargestSocket() && count <= MostOrphans();
  if (count == 0 || count > kMostSockets || (few && !short_of_tcp && !short_of_udp)) return true;
  bytes += count * kSocketBytes;
  const auto add = [&](const char* name, std::uint64_t (*queued)(std::string_view)) {
    const std::uint64_t before = bytes;
    if (bytes > enough_) return std::uint64_t{0};
    // Lists of UDP that grow while they are read may have no end: the next look finds that there are too many.
    const std::uint64_t deadline = sys::NowNs() + kListNs;
    (void)ForEachLine(net + name, [&](std::string_view line) {
      return (bytes += queued(line)) <= enough_ && sys::NowNs() < deadline;
    });
    return bytes - before;
  };
  add("netlink", sys::QueuedNetlinkBytes);
  const std::uint64_t udp = add("udp", sys::QueuedBytes) + add("udp6", sys::QueuedBytes);
  std::uint64_t tcp = 0;
  if (const auto use = sys::LookAtTcp(diag_)) {
    bytes += tcp = use->bytes;
    seen.orphans = use->orphans;
  } else {
    tcp = add("tcp", QueuedTcpBytes) + add("tcp6", QueuedTcpBytes);
  }
  seen.crowds_host = (short_of_tcp && tcp > tcp_pool.bytes / kCrowd) || (short_of_udp && udp > udp_pool.bytes / kCrowd);
  return true;
}

// Adds for how many files the threads of a process wait. False when the time was up before all were seen. Of one that
// hides, its memory alone is not seen: whoever counts it sees that more is used.
bool UncountedWatch::SweepThreads(pid_t pid, std::uint64_t deadline) {
  constexpr std::size_t kMost = 1U << 20;
  const std::string tasks = fmt::format("/proc/{}/task/", pid);
  std::vector<pid_t> threads;
  for (const std::string& name : sys::ListDirectory(tasks, kMost).value_or(std::vector<std::string>())) {
    threads.push_back(std::atoi(name.c_str()));
  }
  std::ranges::sort(threads);
  for (const pid_t thread : threads) {
    if (thread <= swept_thread_) continue;
    const auto call = sys::ReadSmallFile(fmt::format("{}{}/syscall", tasks, thread), 256);
    if (call) found_.waited_for += sys::PolledAtOnce(*call, plan::kMostPolledByThread);
    swept_thread_ = thread;
    if (TooMany(found_) || sys::NowNs() >= deadline) return false;
  }
  return true;
}

// Until its exec a command is a copy of init, which hides; with many commands there is always one. SECURITY: only who
// is as old as its steward, or init, can be such a one: a child of a guest that steward has adopted is younger.
bool UncountedWatch::IsBeforeExec(pid_t pid) const {
  constexpr std::size_t kLongest = 4096;
  const auto stat = [](pid_t of) {
    return sys::ReadSmallFile(fmt::format("/proc/{}/stat", of), kLongest).value_or("");
  };
  const std::string own = stat(pid);
  const std::string parents = stat(sys::ParentPid(own));
  const pid_t above = above_ == Above::kStewards ? sys::ParentPid(parents) : sys::ParentPid(own);
  return above == init_ && sys::StartTicks(own) <= sys::StartTicks(parents) + kBornTicks;
}

void UncountedWatch::NoteHidden(pid_t pid) {
  if (may_hide_ && may_hide_(pid)) return;
  if (IsBeforeExec(pid)) {
    found_before_exec_.insert(pid);
  } else {
    found_.hidden = true;
  }
}

// At the end of a sweep.
void UncountedWatch::JudgeHidden(std::uint64_t now) {
  hidden_sweeps_ = found_.hidden ? hidden_sweeps_ + 1 : 0;
  std::map<pid_t, std::uint64_t> still;
  for (const pid_t pid : std::exchange(found_before_exec_, {})) {
    const auto known = before_exec_.find(pid);
    still[pid] = known == before_exec_.end() ? now : known->second;
    hides_ = hides_ || now - still[pid] >= kExecNs;
  }
  before_exec_ = std::move(still);
}

// Adds what the open files of one process have to what was found. False when the time was up before all were seen.
// Threads share their open files (profiles/kernel.seccomp sees to it), but the first of them may have ended.
bool UncountedWatch::SweepProcess(pid_t pid, std::uint64_t deadline) {
  if (!SweepThreads(pid, deadline)) return false;
  constexpr std::size_t kMost = 1U << 20;
  const auto list = [&](const std::string& path) {
    auto names = sys::ListDirectory(path, kMost);
    // One that hides from its own user (by a program that nobody may read) is there; all others are gone.
    if (!names && ::access(path.c_str(), R_OK) != 0 && errno == EACCES) NoteHidden(pid);
    return std::move(names).value_or(std::vector<std::string>());
  };
  const std::string tasks = fmt::format("/proc/{}/task/", pid);
  for (const std::string& task : list(tasks)) {
    const std::string files = tasks + task + "/fdinfo/";
    std::vector<int> open;
    for (const std::string& name : list(files)) open.push_back(std::atoi(name.c_str()));
    std::ranges::sort(open);
    for (const int fd : open) {
      if (fd <= swept_fd_) continue;
      std::uint64_t file = 0;
      (void)ForEachLine(files + std::to_string(fd), [&](std::string_view line) {
        if (sys::IsLock(line)) ++found_.locks;
        if (sys::IsPolledFile(line)) ++found_.polled;
        if (sys::IsInotifyMark(line)) ++found_.marks;
        if (const std::uint64_t inode = sys::TabbedNumber(line, "ino:"); inode != 0) file = inode;
        // Many may have the same socket open.
        const std::uint64_t sent = sys::TabbedNumber(line, "scm_fds:");
        if (sent != 0 && senders_.insert(file).second) found_.in_flight += sent;
        return !TooMany(found_);
      });
      swept_fd_ = fd;
      if (TooMany(found_) || sys::NowNs() >= deadline) return false;
    }
    if (!open.empty()) break;
  }
  return true;
}

bool UncountedWatch::LookAtFiles(std::uint64_t now, Uncounted& seen) {
  const auto meminfo = sys::ReadSmallFile("/proc/meminfo", 16384);
  if (!meminfo) return false;
  const std::uint64_t slab = sys::KeyedNumber(*meminfo, "SUnreclaim:") * 1024;
  least_slab_ = std::min(least_slab_, slab);
  if (swept_at_ == 0) swept_at_ = now;
  grows_ = slab - least_slab_ >= kGrowth;
  // Not from /proc/locks: whoever reads it stops all locking on the host each time, and it holds everybody's. A guest
  // may have very many files open, or such as take long to describe: some now and others at the next look. SECURITY:
  // all that were there at the start are seen before the next sweep begins, whoever comes and goes meanwhile.
  std::vector<pid_t> tree = PidsOfGuest(init_, above_);
  if (most_open_ > plan::kMostOpen) {
    for (const pid_t pid : tree) seen.open += OpenFiles(pid);
  }
  if (unswept_.empty()) {
    if (!grows_ && now - swept_at_ < kSweepNs) return true;
    unswept_ = tree;
    found_ = {};
    senders_.clear();
    swept_fd_ = -1;
    swept_thread_ = 0;
  }
  std::ranges::sort(tree);  // A pid of somebody who is gone may be anybody's by now.
  const std::uint64_t deadline = sys::NowNs() + kLookNs;
  while (!unswept_.empty()) {
    if (std::ranges::binary_search(tree, unswept_.back()) && !SweepProcess(unswept_.back(), deadline)) break;
    unswept_.pop_back();
    swept_fd_ = -1;
    swept_thread_ = 0;
  }
  seen.hidden = hides_ || hidden_sweeps_ >= kMostHidden;
  seen.locks = found_.locks;
  seen.polled = found_.polled;
  seen.marks = found_.marks;
  seen.in_flight = found_.in_flight;
  seen.waited_for = found_.waited_for;
  if (unswept_.empty()) {
    JudgeHidden(now);
    swept_at_ = now;
    least_slab_ = slab;  // Not again for the same.
  }
  return true;
}

std::optional<Uncounted> UncountedWatch::Look(std::uint64_t now) {
  Uncounted seen;
  if (sockets_ == Sockets::kOwn && !LookAtSockets(seen)) return std::nullopt;
  if (!LookAtFiles(now, seen)) return std::nullopt;
  return seen;
}

KillReason UncountedWatch::Judge(const Uncounted& seen) const {
  if (seen.hidden) return KillReason::kLostInit;
  if (TooMany(seen) || seen.orphans > MostOrphans() || seen.sockets > kMostSockets) return KillReason::kObjects;
  if (seen.crowds_host) return KillReason::kCrowdsHost;
  return seen.socket_bytes + seen.locks * kLockBytes > enough_ ? KillReason::kUncounted : KillReason::kNone;
}

}  // namespace belljar::launch
