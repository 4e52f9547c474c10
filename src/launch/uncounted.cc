#include "launch/uncounted.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "launch/watcher.h"
#include "sys/files.h"
#include "sys/proc_text.h"

namespace belljar::launch {
namespace {

constexpr std::uint64_t kSocketBytes = 4096;  // The socket itself and a packet, where it was made by no process.
constexpr std::uint64_t kLockBytes = 256;     // struct file_lock is 200 to 216.
constexpr std::uint64_t kMostLockBytes = 4ULL << 20;
// What the kernel may grow by before somebody looks at all locks. That list is expensive: to read it stops all locking
// on the host for a moment.
constexpr std::uint64_t kGrowth = 16ULL << 20;

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
  return largest;
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

std::optional<std::uint64_t> UncountedWatch::LockBytes() {
  const auto meminfo = sys::ReadSmallFile("/proc/meminfo", 16384);
  if (!meminfo) return std::nullopt;
  const std::uint64_t slab = sys::KeyedNumber(*meminfo, "SUnreclaim:") * 1024;
  least_slab_ = std::min(least_slab_, slab);
  if (slab - least_slab_ < kGrowth) return 0;
  least_slab_ = slab;  // Not again for the same.
  const std::vector<pid_t> tree = PidsOfTree(init_);
  const std::unordered_set<pid_t> guests(tree.begin(), tree.end());
  std::uint64_t bytes = 0;
  const bool seen = ForEachLine("/proc/locks", [&](std::string_view line) {
    const pid_t owner = sys::RecordLockOwner(line);
    if (owner != 0 && guests.contains(owner)) bytes += kLockBytes;
    return bytes <= kMostLockBytes;
  });
  if (!seen) return std::nullopt;
  return bytes;
}

std::optional<Uncounted> UncountedWatch::Look() {
  Uncounted seen;
  if (sockets_ == Sockets::kOwn) {
    const auto bytes = SocketBytes();
    if (!bytes) return std::nullopt;
    seen.socket_bytes = *bytes;
  }
  const auto bytes = LockBytes();
  if (!bytes) return std::nullopt;
  seen.lock_bytes = *bytes;
  return seen;
}

bool UncountedWatch::IsTooMuch(const Uncounted& seen) const {
  return seen.lock_bytes > kMostLockBytes || seen.socket_bytes + seen.lock_bytes > enough_;
}

}  // namespace belljar::launch
