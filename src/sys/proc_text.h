// sys/proc_text.h: reads the text of files in /proc and of cgroups. Pure functions over bytes: a guest can't write
// these files, but it chooses what stands in some of them (names of processes, numbers), so they are fuzzed.
//
// Whatever can't be understood is nothing: 0, or an empty list.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::sys {

/// The first number of a text, as in memory.peak.
std::uint64_t FirstNumber(std::string_view text);

/// The number behind `key` in a flat keyed file, as in memory.events.
std::uint64_t KeyedNumber(std::string_view text, std::string_view key);

/// The caller's path in the hierarchy of `controller` ("" is v2's), from lines of /proc/self/cgroup: "4:memory:/a/b".
std::string CgroupPath(std::string_view text, std::string_view controller);

/// /proc/PID/task/TID/children: positive numbers only.
std::vector<pid_t> ChildPids(std::string_view text);

/// Fields 14 to 17 of /proc/PID/stat together: CPU time of a process and its children, in ticks. The name in field 2
/// may hold anything, parentheses and line breaks included.
std::uint64_t CpuTicks(std::string_view text);

/// Field 4 of /proc/PID/stat: the parent, or 0.
pid_t ParentPid(std::string_view text);

/// Field 22 of /proc/PID/stat: when it was made, in ticks since boot, or 0.
std::uint64_t StartTicks(std::string_view text);

/// The second field of /proc/PID/statm.
std::uint64_t ResidentPages(std::string_view text);

/// The line "Pss:" of /proc/PID/smaps_rollup, in kilobytes.
std::uint64_t PssKilobytes(std::string_view text);

/// One line of /proc/PID/net/tcp or udp (or their twins for IPv6): the bytes that wait in the socket, both ways. A
/// socket that listens has connections there instead of bytes, and counts for nothing.
std::uint64_t QueuedBytes(std::string_view line);

/// One line of /proc/PID/net/netlink: the bytes that wait in the socket, both ways.
std::uint64_t QueuedNetlinkBytes(std::string_view line);

/// /proc/PID/net/sockstat: the number behind `name` in the line of `protocol` ("TCP", "mem").
std::uint64_t SocketNumber(std::string_view text, std::string_view protocol, std::string_view name);

/// The number behind `key`, colon included, at the start of a line, as in /proc/PID/status.
std::uint64_t TabbedNumber(std::string_view text, std::string_view key);

/// /proc/PID/syscall: for how many files the thread waits by poll() or select(), which hold a place for each. `most` is
/// what it may wait for, by which poll() is told from other calls once the thread was stopped.
std::uint64_t PolledAtOnce(std::string_view text, std::uint64_t most);

/// Whether a line of /proc/PID/fdinfo/FD tells of a record lock that the process holds by this open file, or of one of
/// the file itself (flock).
bool IsLock(std::string_view line);

/// Whether such a line tells of something that an inotify descriptor watches.
bool IsInotifyMark(std::string_view line);

/// Whether such a line tells of a file that an epoll descriptor looks at.
bool IsPolledFile(std::string_view line);

}  // namespace belljar::sys
