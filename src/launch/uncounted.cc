#include "launch/uncounted.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "launch/watcher.h"
#include "sys/files.h"
#include "sys/proc_text.h"

namespace belljar::launch {
namespace {

constexpr std::uint64_t kSocketBytes = 4096;  // The socket itself and a packet, where it was made by no process.
constexpr std::uint64_t kLockBytes = 256;     // struct file_lock is 200 to 216.
constexpr std::uint64_t kMostLocks = 16'384;
constexpr std::uint64_t kMostPolled = 65'536;  // A host of 512 MiB lets one user have twice as many.
constexpr std::uint64_t kMostFiles = 10'000;   // At one look; some 5 µs each.
// The guest's open files are looked through when the kernel has grown by this, all of the host; and after this time all
// the same, as what one guest takes may be hidden by what another gives back.
constexpr std::uint64_t kGrowth = 16ULL << 20;
constexpr std::uint64_t kSweepNs = 1'000'000'000;

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

// What one socket can hold at most: the largest buffers that the host lets anybody ask for, which are doubled.
std::uint64_t LargestSocket() {
  constexpr std::uint64_t kUnknown = 16ULL << 20;  // Not shown in network namespaces before Linux 6.
  std::uint64_t largest = 0;
  for (const char* name : {"rmem_max", "wmem_max"}) {
    const auto text = sys::ReadSmallFile(std::string("/proc/sys/net/core/") + name, 64);
    largest += text ? 2 * sys::FirstNumber(*text) : kUnknown;
  }
  return std::max<std::uint64_t>(1, largest);
}

bool TooMany(const Uncounted& found) { return found.locks > kMostLocks || found.polled > kMostPolled; }

// Adds what the open files of one process have to `found`, and their number to `files_seen`. Threads share their open
// files (profiles/kernel.seccomp sees to it), but the first of them may have ended.
void AddFilesOf(pid_t pid, Uncounted& found, std::uint64_t& files_seen) {
  constexpr std::size_t kMost = 1U << 20;
  const auto list = [](const std::string& path) {
    return sys::ListDirectory(path, kMost).value_or(std::vector<std::string>());  // Gone, or of no use to it any more.
  };
  const std::string tasks = fmt::format("/proc/{}/task/", pid);
  for (const std::string& task : list(tasks)) {
    const std::string files = tasks + task + "/fdinfo/";
    const std::vector<std::string> open = list(files);
    for (const std::string& fd : open) {
      (void)ForEachLine(files + fd, [&](std::string_view line) {
        if (sys::IsRecordLock(line)) ++found.locks;
        if (sys::IsPolledFile(line)) ++found.polled;
        return !TooMany(found);
      });
      if (TooMany(found)) return;
    }
    files_seen += open.size();
    if (!open.empty()) break;
  }
}

}  // namespace

std::optional<std::uint64_t> UncountedWatch::SocketBytes() const {
  const std::string net = fmt::format("/proc/{}/net/", init_);
  const auto summary = sys::ReadSmallFile(net + "sockstat", 4096);
  if (!summary) return std::nullopt;
  const std::uint64_t count = sys::KeyedNumber(*summary, "sockets: used");
  // The lists of TCP are slow to read, whoever's they are: not before there is something to find.
  if (count == 0 || count <= enough_ / LargestSocket()) return 0;
  std::uint64_t bytes = count * kSocketBytes;
  const auto add = [&](const char* name, std::uint64_t (*queued)(std::string_view)) {
    if (bytes > enough_) return;
    (void)ForEachLine(net + name, [&](std::string_view line) { return (bytes += queued(line)) <= enough_; });
  };
  add("netlink", sys::QueuedNetlinkBytes);
  for (const char* name : {"udp", "udp6", "tcp", "tcp6"}) add(name, sys::QueuedBytes);
  return bytes;
}

bool UncountedWatch::LookAtFiles(std::uint64_t now, Uncounted& seen) {
  const auto meminfo = sys::ReadSmallFile("/proc/meminfo", 16384);
  if (!meminfo) return false;
  const std::uint64_t slab = sys::KeyedNumber(*meminfo, "SUnreclaim:") * 1024;
  least_slab_ = std::min(least_slab_, slab);
  if (swept_at_ == 0) swept_at_ = now;
  if (slab - least_slab_ < kGrowth && now - swept_at_ < kSweepNs) return true;
  // Not from /proc/locks: whoever reads it stops all locking on the host each time, and it holds everybody's. A guest
  // may have very many files open: some of its processes now and others at the next look, for a bounded time each.
  const std::vector<pid_t> tree = PidsOfTree(init_);
  std::uint64_t files = 0;
  for (; swept_ < tree.size() && files < kMostFiles && !TooMany(found_); ++swept_) {
    AddFilesOf(tree[swept_], found_, files);
  }
  seen.locks = found_.locks;
  seen.polled = found_.polled;
  if (swept_ >= tree.size()) {
    swept_ = 0;
    found_ = {};
    swept_at_ = now;
    least_slab_ = slab;  // Not again for the same.
  }
  return true;
}

std::optional<Uncounted> UncountedWatch::Look(std::uint64_t now) {
  Uncounted seen;
  if (sockets_ == Sockets::kOwn) {
    const auto bytes = SocketBytes();
    if (!bytes) return std::nullopt;
    seen.socket_bytes = *bytes;
  }
  if (!LookAtFiles(now, seen)) return std::nullopt;
  return seen;
}

KillReason UncountedWatch::Judge(const Uncounted& seen) const {
  if (TooMany(seen)) return KillReason::kObjects;
  return seen.socket_bytes + seen.locks * kLockBytes > enough_ ? KillReason::kUncounted : KillReason::kNone;
}

}  // namespace belljar::launch
