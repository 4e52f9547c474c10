#include "sys/proc_text.h"

#include <sys/syscall.h>

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace belljar::sys {
namespace {

using Pids = std::vector<pid_t>;

std::uint64_t Polled(std::string_view text) { return PolledAtOnce(text, 2047); }

TEST(ProcText, NamesOfProcessesHoldAnything) {
  const std::string rest = " S 1 2 3 0 -1 4194560 10 20 30 40 5 6 7 8 20 0 1 0";
  EXPECT_EQ(CpuTicks("42 (cat)" + rest), 26U);
  EXPECT_EQ(CpuTicks("42 (a) R 9 9 9 9 9 9 9 9 9 9 99 99 99 99 (b)" + rest), 26U);
  EXPECT_EQ(CpuTicks("42 (a\nb) c)" + rest), 26U);
  EXPECT_EQ(CpuTicks("42 (cat) S 1 2"), 0U);
  EXPECT_EQ(CpuTicks(""), 0U);
  EXPECT_EQ(ParentPid("42 (cat) S 7 8 9"), 7);
  EXPECT_EQ(ParentPid("42 (a) S 9 (b) R 7 8"), 7);
  EXPECT_EQ(ParentPid("42 (cat) S -7"), 0);
  EXPECT_EQ(ParentPid("42 (cat) S 99999999999"), 0);
  EXPECT_EQ(ParentPid("42"), 0);
  EXPECT_EQ(StartTicks("42 (a) S 9 (b)" + rest + " 777 1"), 777U);
  EXPECT_EQ(StartTicks("42 (cat)" + rest), 0U);
}

TEST(ProcText, Children) {
  EXPECT_EQ(ChildPids("12 345 6 "), (Pids{12, 345, 6}));
  EXPECT_EQ(ChildPids(""), Pids{});
  EXPECT_EQ(ChildPids("-1 0 x 99999999999 7"), Pids{7}) << "-1 would be everybody";
}

TEST(ProcText, Memory) {
  EXPECT_EQ(ResidentPages("1000 250 30 1 0 40 0\n"), 250U);
  EXPECT_EQ(ResidentPages("1000"), 0U);
  EXPECT_EQ(PssKilobytes("00400000-7ffd [rollup]\nRss:  900 kB\nPss:    123 kB\nPss_Dirty: 4 kB\n"), 123U);
  EXPECT_EQ(PssKilobytes("Rss: 900 kB\n"), 0U);
}

TEST(ProcText, BytesThatWaitInSockets) {
  const std::string addresses = "   7: 0100007F:1F90 0100007F:8A2C ";
  EXPECT_EQ(QueuedBytes(addresses + "01 00000010:00000A00 00:00000000 00000000  1000        0 7"), 0xA10U);
  EXPECT_EQ(QueuedBytes(addresses + "0A 00000000:00000080 00:00000000 00000000  1000        0 7"), 0U)
      << "a backlog is no bytes";
  EXPECT_EQ(QueuedBytes("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid"), 0U);
  EXPECT_EQ(QueuedBytes(addresses + "01 nonsense"), 0U);
  EXPECT_EQ(QueuedBytes(""), 0U);
  EXPECT_EQ(QueuedNetlinkBytes("00000000a354f222 0   42         00000000 212000   768      0     2        0        78"),
            212768U);
  EXPECT_EQ(QueuedNetlinkBytes("sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops"), 0U);
}

TEST(ProcText, SocketNumbers) {
  constexpr char kText[] =
      "sockets: used 9\nTCP: inuse 1 orphan 2 tw 3 alloc 4 mem 115\nUDP: inuse 0 mem 120\nTCP6: mem 7\n";
  EXPECT_EQ(SocketNumber(kText, "TCP", "mem"), 115U);
  EXPECT_EQ(SocketNumber(kText, "TCP", "tw"), 3U);
  EXPECT_EQ(SocketNumber(kText, "UDP", "mem"), 120U);
  EXPECT_EQ(SocketNumber(kText, "UDP", "tw"), 0U);
  EXPECT_EQ(SocketNumber(kText, "RAW", "mem"), 0U);
  EXPECT_EQ(SocketNumber("", "TCP", "mem"), 0U);
}

TEST(ProcText, FilesThatAThreadWaitsFor) {
  const auto call = [](long number) {
    return std::to_string(number) + " 0x7d0 0x3e8 0xffffffff 0x0 0x0 0x0 0x7ffe 0x7f20";
  };
  EXPECT_EQ(Polled(call(SYS_ppoll)), 1000U);
  EXPECT_EQ(Polled(call(SYS_pselect6)), 2000U);
  EXPECT_EQ(Polled(call(SYS_read)), 0U);
  const auto stopped = [](std::uint64_t second) {
    return Polled(fmt::format("{} 0x7ffe 0x{:x} 0xffffffff 0x0 0x0 0x0 0x7ffe 0x7f20\n", SYS_restart_syscall, second));
  };
  EXPECT_EQ(stopped(2047), 2047U) << "of poll(), after a stop";
  EXPECT_EQ(stopped(400), 400U);
  for (const std::uint64_t other : {0x89, 0x189, 0x80, 0x180, 0, 9, 2048, 0x7ffe1000})
    EXPECT_EQ(stopped(other), 0U) << other;
  EXPECT_EQ(Polled("running\n"), 0U);
  EXPECT_EQ(Polled("-1 0x7ffe 0x7f20"), 0U);
  EXPECT_EQ(Polled(""), 0U);
}

TEST(ProcText, RecordLocks) {
  EXPECT_TRUE(IsLock("lock:\t1: POSIX  ADVISORY  READ 77 08:01:77 2 2\n"));
  EXPECT_TRUE(IsLock("lock:\t2: FLOCK  ADVISORY  WRITE 77 08:01:77 0 EOF\n"));
  EXPECT_FALSE(IsLock("flags:\t1: POSIX\n"));
  EXPECT_FALSE(IsLock("lock:"));
  EXPECT_FALSE(IsLock(""));
  EXPECT_TRUE(IsPolledFile("tfd:        8 events:       19 data:                8  pos:0 ino:3a7 sdev:10\n"));
  EXPECT_FALSE(IsPolledFile("flags:\t02000002 tfd:\n"));
  EXPECT_FALSE(IsPolledFile(""));
}

TEST(ProcText, Cgroups) {
  EXPECT_EQ(FirstNumber("4096\n"), 4096U);
  EXPECT_EQ(FirstNumber("max\n"), 0U);
  EXPECT_EQ(KeyedNumber("low 0\nmax 3\noom_kill 2\n", "oom_kill"), 2U);
  EXPECT_EQ(KeyedNumber("oom_kill_disable 0\nunder_oom 0\noom_kill 5", "oom_kill"), 5U);
  EXPECT_EQ(KeyedNumber("max", "max"), 0U);
  EXPECT_EQ(CgroupPath("4:memory:/a/b\n0::/c\n", "memory"), "/a/b");
  EXPECT_EQ(CgroupPath("2:cpu,cpuacct:/x\n0::/c\n", "cpuacct"), "/x");
  EXPECT_EQ(CgroupPath("4:memory:/a:b\n0::/c\n", ""), "/c");
  EXPECT_EQ(CgroupPath("4:memory:/a:b\n", "memory"), "/a:b");
  EXPECT_EQ(CgroupPath("nonsense\n::\n", "memory"), "");
}

}  // namespace
}  // namespace belljar::sys
