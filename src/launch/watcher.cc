#include "launch/watcher.h"

#include <dirent.h>
#include <fts.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "sys/files.h"
#include "sys/proc_text.h"

namespace belljar::launch {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

// Whether a child has the memory of its parent itself, not a copy: by vfork(), until it executes something.
bool IsOneMemory(pid_t pid, pid_t parent) { return ::syscall(SYS_kcmp, pid, parent, KCMP_VM, 0, 0) == 0; }

// Calls `visit(pid, threads, depth, parent)` for init and every process below it. Bounded: a fork bomb may be faster
// than this walk. False when init itself can't be looked at.
template <typename Visit>
bool WalkTree(pid_t init, Visit visit) {
  constexpr std::size_t kMostProcesses = 100'000;
  struct Waiting {
    pid_t pid;
    int depth;
    pid_t parent;
  };
  std::vector<Waiting> waiting = {{init, 0, 0}};
  for (std::size_t at = 0; at < waiting.size() && waiting.size() < kMostProcesses; ++at) {
    const auto [pid, depth, parent] = waiting[at];
    const std::string tasks = fmt::format("/proc/{}/task", pid);
    const std::unique_ptr<DIR, CloseDirectory> directory(::opendir(tasks.c_str()));
    if (directory == nullptr && at == 0) return false;
    if (directory == nullptr) continue;  // Gone meanwhile.
    std::uint64_t threads = 0;
    while (const dirent* entry = ::readdir(directory.get())) {
      if (entry->d_name[0] == '.') continue;
      ++threads;
      const auto children = sys::ReadSmallFile(fmt::format("{}/{}/children", tasks, entry->d_name), 1U << 20);
      if (!children) continue;
      for (const pid_t child : sys::ChildPids(*children)) waiting.push_back({child, depth + 1, pid});
    }
    visit(pid, threads, depth, parent);
  }
  return true;
}

// What a file of /proc says about a process's memory. One whose first thread has ended shows none under its own number,
// and has all that it had while others of its threads live.
template <typename Parse>
std::uint64_t OfAnyThread(pid_t pid, const char* name, Parse parse) {
  constexpr std::size_t kLongest = 8192;
  const auto read = [&](const std::string& path) { return parse(sys::ReadSmallFile(path, kLongest).value_or("")); };
  if (const std::uint64_t value = read(fmt::format("/proc/{}/{}", pid, name)); value != 0) return value;
  const std::string tasks = fmt::format("/proc/{}/task", pid);
  const std::unique_ptr<DIR, CloseDirectory> directory(::opendir(tasks.c_str()));
  if (directory == nullptr) return 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (entry->d_name[0] == '.') continue;
    if (const std::uint64_t value = read(fmt::format("{}/{}/{}", tasks, entry->d_name, name)); value != 0) return value;
  }
  return 0;
}

std::uint64_t ResidentBytes(pid_t pid) {
  return OfAnyThread(pid, "statm", sys::ResidentPages) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t CpuNs(pid_t pid) {
  const auto text = sys::ReadSmallFile(fmt::format("/proc/{}/stat", pid), 4096).value_or("");
  return sys::CpuTicks(text) * (1'000'000'000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)));
}

}  // namespace

std::optional<TreeUse> LookAtTree(pid_t init) {
  TreeUse use;
  const bool seen = WalkTree(init, [&](pid_t pid, std::uint64_t threads, int, pid_t) {
    use.cpu_ns += CpuNs(pid);
    if (pid == init) return;  // A copy of the caller, whose memory is the caller's.
    use.tasks += threads;
    use.memory_bytes += ResidentBytes(pid);
  });
  if (!seen) return std::nullopt;
  return use;
}

std::optional<std::uint64_t> CpuTimeOfTree(pid_t top) {
  std::uint64_t ns = 0;
  if (!WalkTree(top, [&](pid_t pid, std::uint64_t, int, pid_t) { ns += CpuNs(pid); })) return std::nullopt;
  return ns;
}

std::vector<pid_t> PidsOfGuest(pid_t init, Above above) {
  std::vector<pid_t> pids;
  WalkTree(init, [&](pid_t pid, std::uint64_t, int depth, pid_t) {
    if (depth >= static_cast<int>(above)) pids.push_back(pid);
  });
  return pids;
}

std::uint64_t ProportionalMemory(pid_t init) {
  std::uint64_t bytes = 0;
  WalkTree(init, [&](pid_t pid, std::uint64_t, int, pid_t parent) {
    if (pid == init || IsOneMemory(pid, parent)) return;
    const std::uint64_t kilobytes = OfAnyThread(pid, "smaps_rollup", sys::PssKilobytes);
    bytes += kilobytes != 0 ? kilobytes * 1024 : ResidentBytes(pid);
  });
  return bytes;
}

DirectoryUse LookAtDirectory(const std::string& path, std::uint64_t enough_bytes, std::uint64_t enough_files) {
  DirectoryUse use;
  std::string root = path;
  char* const roots[] = {root.data(), nullptr};
  // FTS_NOCHDIR: other threads of this process share its working directory.
  const std::unique_ptr<FTS, decltype(&::fts_close)> tree(
      ::fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, nullptr), &::fts_close);
  if (tree == nullptr) return use;
  while (const FTSENT* entry = ::fts_read(tree.get())) {
    if (entry->fts_info == FTS_DP) continue;
    // A directory that the guest locked, or a path too long: there may be anything in it. Gone meanwhile is neither.
    const bool unseen = entry->fts_info == FTS_DNR || entry->fts_info == FTS_NS || entry->fts_info == FTS_ERR;
    if (unseen && entry->fts_errno != ENOENT) use.seen_all = false;
    ++use.files;
    if (entry->fts_statp != nullptr && entry->fts_info != FTS_NS) {
      use.bytes += static_cast<std::uint64_t>(entry->fts_statp->st_blocks) * 512;
    }
    if (use.bytes > enough_bytes || use.files > enough_files) break;
  }
  return use;
}

}  // namespace belljar::launch
