#include "sys/proc_text.h"

#include <sys/syscall.h>

#include <algorithm>
#include <charconv>

namespace belljar::sys {
namespace {

std::string_view SkipBlanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text;
}

// The number at the start of `text`, which is then behind it. 0 where there is none, or one too large.
std::uint64_t TakeNumber(std::string_view& text) {
  text = SkipBlanks(text);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc() ? value : 0;
}

std::string_view TakeLine(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

std::string_view TakeField(std::string_view& text) {
  text = SkipBlanks(text);
  const std::string_view field = text.substr(0, text.find(' '));
  text.remove_prefix(field.size());
  return field;
}

void SkipFields(std::string_view& text, int count) {
  for (int i = 0; i < count; ++i) (void)TakeField(text);
}

// Of /proc/PID/stat, counted from 1. False where there is no name in it.
bool SkipToField(std::string_view& text, int field) {
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return false;
  text.remove_prefix(name_end + 1);
  SkipFields(text, field - 3);
  return true;
}

std::uint64_t HexNumber(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() ? value : 0;
}

}  // namespace

std::uint64_t FirstNumber(std::string_view text) { return TakeNumber(text); }

std::uint64_t KeyedNumber(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = TakeLine(text);
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ' ') continue;
    line.remove_prefix(key.size());
    return TakeNumber(line);
  }
  return 0;
}

std::string CgroupPath(std::string_view text, std::string_view controller) {
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    const std::size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    std::string_view names = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (names.empty() && controller.empty()) return path;
    while (!names.empty()) {
      const std::string_view name = names.substr(0, names.find(','));
      names.remove_prefix(std::min(name.size() + 1, names.size()));
      if (!controller.empty() && name == controller) return path;
    }
  }
  return {};
}

std::vector<pid_t> ChildPids(std::string_view text) {
  std::vector<pid_t> pids;
  while (!text.empty()) {
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
    if (error == std::errc() && pid > 0) pids.push_back(pid);
    text.remove_prefix(std::min(static_cast<std::size_t>(end - text.data()) + 1, text.size()));
  }
  return pids;
}

std::uint64_t CpuTicks(std::string_view text) {
  if (!SkipToField(text, 14)) return 0;
  std::uint64_t ticks = 0;
  for (int field = 0; field < 4; ++field) ticks += TakeNumber(text);
  return ticks;
}

pid_t ParentPid(std::string_view text) {
  constexpr std::uint64_t kMostPid = 1U << 22;
  const std::uint64_t pid = SkipToField(text, 4) ? TakeNumber(text) : 0;
  return pid > kMostPid ? 0 : static_cast<pid_t>(pid);
}

std::uint64_t StartTicks(std::string_view text) { return SkipToField(text, 22) ? TakeNumber(text) : 0; }

std::uint64_t ResidentPages(std::string_view text) {
  SkipFields(text, 1);
  return TakeNumber(text);
}

std::uint64_t PssKilobytes(std::string_view text) { return TabbedNumber(text, "Pss:"); }

std::uint64_t QueuedBytes(std::string_view line) {
  // "  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 …": number, local, remote, state, sent:received.
  constexpr std::string_view kListens = "0A";
  SkipFields(line, 3);
  if (TakeField(line) == kListens) return 0;
  const std::string_view queues = TakeField(line);
  const std::size_t colon = queues.find(':');
  if (colon == std::string_view::npos) return 0;
  return HexNumber(queues.substr(0, colon)) + HexNumber(queues.substr(colon + 1));
}

std::uint64_t QueuedNetlinkBytes(std::string_view line) {
  SkipFields(line, 4);
  const std::uint64_t received = TakeNumber(line);
  return received + TakeNumber(line);
}

std::uint64_t SocketNumber(std::string_view text, std::string_view protocol, std::string_view name) {
  while (!text.empty()) {
    std::string_view line = TakeLine(text);
    std::string_view head = TakeField(line);
    if (!head.ends_with(':') || head.substr(0, head.size() - 1) != protocol) continue;
    while (!line.empty()) {
      if (TakeField(line) == name) return TakeNumber(line);
    }
  }
  return 0;
}

std::uint64_t PolledAtOnce(std::string_view text, std::uint64_t most) {
  // "7 0x7ffe536fb0c0 0x2 0xffffffff …": the number of the call and its arguments; "running" where it is in none.
  const std::uint64_t call = TakeNumber(text);
  const auto argument = [&] {
    const std::string_view field = TakeField(text);
    return field.starts_with("0x") ? HexNumber(field.substr(2)) & 0xffffffff : 0;
  };
  const std::uint64_t first = argument();
  const std::uint64_t second = argument();
  // One that was stopped and goes on: its registers are those of the call that waits, whichever it was. The other small
  // numbers that stand there are operations of futex().
  const auto may_be_poll = [most](std::uint64_t files) {
    constexpr std::uint64_t kFutexFlags = 0x180;
    const std::uint64_t operation = files & ~kFutexFlags;
    return files <= most && operation != 0 && operation != 9;
  };
  switch (call) {
#ifdef SYS_poll
    case SYS_poll: return second;
    case SYS_select: return first;
#endif
    case SYS_ppoll: return second;
    case SYS_restart_syscall: return may_be_poll(second) ? second : 0;
    case SYS_pselect6: return first;
    default: return 0;
  }
}

std::uint64_t TabbedNumber(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = TakeLine(text);
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    return TakeNumber(line);
  }
  return 0;
}

bool IsLock(std::string_view line) {
  // "lock:	1: POSIX  ADVISORY  READ  1234 08:01:77 0 EOF"
  constexpr std::string_view kKey = "lock:";
  if (!line.starts_with(kKey)) return false;
  line.remove_prefix(kKey.size());
  SkipFields(line, 1);
  const std::string_view kind = TakeField(line);
  return kind == "POSIX" || kind == "FLOCK";
}

bool IsInotifyMark(std::string_view line) {
  // "inotify wd:1 ino:2 sdev:800001 mask:fce ignored_mask:0 fhandle-bytes:8 …"
  return line.starts_with("inotify wd:");
}

bool IsPolledFile(std::string_view line) {
  // "tfd:        8 events:       19 data:                8  pos:0 ino:3a7 sdev:10"
  return line.starts_with("tfd:");
}

}  // namespace belljar::sys
