// Files of /proc and of cgroups: a guest chooses names and numbers in them.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "require.h"
#include "sys/proc_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using belljar::fuzz::Require;
  namespace sys = belljar::sys;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)sys::FirstNumber(text);
  (void)sys::KeyedNumber(text, "max");
  (void)sys::KeyedNumber(text, "oom_kill");
  (void)sys::ResidentPages(text);
  (void)sys::PssKilobytes(text);
  for (const pid_t pid : sys::ChildPids(text)) Require(pid > 0, "a child is one process, never a group or everybody");
  for (const char* controller : {"", "memory", "pids", "cpu"}) {
    const std::string path = sys::CgroupPath(text, controller);
    Require(path.find('\n') == std::string::npos, "a path is of one line", path);
  }
  // A process may have any name of 15 bytes: what stands behind it is read all the same.
  std::string name(text.substr(0, 15));
  const std::string stat = "7 (" + name + ") S 1 2 3 0 -1 4194560 10 20 30 40 5 6 7 8 20 0 1 0 100\n";
  Require(sys::CpuTicks(stat) == 26, "the name of a process does not matter", stat);
  (void)sys::CpuTicks(text);
  (void)sys::SocketNumber(text, "TCP", "mem");
  (void)sys::PolledAtOnce(text, 2047);
  Require(sys::ParentPid(text) >= 0, "no group of processes", std::string(text));
  return 0;
}
