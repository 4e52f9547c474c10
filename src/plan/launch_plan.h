// plan/launch_plan.h: a policy compiled into flat data that the child side executes without deciding anything.
//
// A LaunchPlan is the head of one contiguous block of memory: steps, texts and filters follow it and are named by
// offset, so that the block can be copied or sent as it is. src/jail includes this file and nothing else of ours;
// keep it free of everything that allocates or throws.
#pragma once

#include <linux/filter.h>

#include <cstdint>

namespace belljar::plan {

/// What a step does. The order of the steps is the plan's; the numbers are only names.
enum class Op : std::uint16_t {
  // Sandbox init, in the caller's file view.
  kHideCaller,       ///< Wipe the argument and environment strings that init has as a copy of its caller.
  kCloseForeign,     ///< Close what the caller has open but did not hand over.
  kDieWithParent,    ///< Ask for a signal when the caller dies.
  kJoinCgroup,       ///< slot: an open cgroup `tasks` or `cgroup.procs` file.
  kCgroupNamespace,  ///< After joining: the sandbox's cgroup is the root of what it sees.
  kOomScore,         ///< text: the number; guests die before host processes when the host runs out of memory.
  kBecome,           ///< text: a program that makes the walls and starts init in them; slot: see kBecomePlan
  kInside,           ///< The first step of that init: it tells the parent which process it is now.
  kSameFile,         ///< text: path, value: device, more_value: inode; what that program mounted is what was meant
  kMapIds,           ///< text: uid_map, more: gid_map. Inside a new user namespace.
  kNoDump,           ///< Nobody may trace init or read its memory.
  kPrivateMounts,
  kNewRoot,   ///< text: options of its tmpfs. All later paths are inside it.
  kHostRoot,  ///< All later paths are the host's (forms without an own root).
  // Building the file view.
  kDirectory,    ///< text: path, value: mode, more_value: owner + 1, or 0 for init's own
  kSymlink,      ///< text: path, more: where it points, more_value: Reach
  kFile,         ///< text: path, more: contents, value: mode, more_value: length of the contents
  kMountPoint,   ///< text: path; value: 0 directory, 1 file; more_value: Reach. Made when absent.
  kBind,         ///< text: target, more: source, value: MOUNT_ATTR_*, more_value: Reach, slot: an idmap or -1
  kTmpfs,        ///< text: target, more: options "size\0…\0mode\0…\0\0", value: MOUNT_ATTR_*
  kDevice,       ///< text: path, value: its number
  kProc,         ///< text: target
  kDevpts,       ///< text: target, more: options as above
  kTerminals,    ///< more: options as above; for the commands of a live sandbox, and mounted nowhere
  kMaskSource,   ///< text: path of an empty, unreadable directory that is mounted there and covers others
  kMask,         ///< text: path, value: Cover, more: path of the mask source; absent is fine but for kPresent
  kCovered,      ///< As kMask, where another program has made the cover: for kWatchCovers alone
  kReadOnly,     ///< text: path of a mount that becomes read-only
  kSealRoot,     ///< The root becomes read-only.
  kPivot,        ///< The root becomes "/", the host's tree is detached.
  kWatchCovers,  ///< Each step that `covers` has to be in force; init ends all when one is no more.
  kHostname,     ///< text
  kLoopback,
  kJoinNetwork,       ///< The network namespace that the janitor made meanwhile, its loopback up.
  kNetworkAhead,      ///< Nothing to do: init was born in one that the launcher had made, its loopback up.
  kSocketDiag,        ///< Send the caller a socket by which it sees what the sandbox's sockets hold.
  kTerminal,          ///< Open a pseudo-terminal of the sandbox and send its master to the caller.
  kRlimit,            ///< value: resource, more_value: the limit
  kAffinity,          ///< value: how many CPUs
  kLandlockRules,     ///< value: handled filesystem rights, more_value: handled network rights, slot: scopes
  kLandlockAllow,     ///< text: path, value: rights, more_value: Reach; absent is fine when slot is 1
  kSetIds,            ///< value: uid, more_value: gid; supplementary groups are dropped
  kUserNamespace,     ///< text: uid_map, more: gid_map. After the ids were set: owns none of the other namespaces.
  kDropCapabilities,  ///< value: 1 with the bounding set, 2 that alone, 3: that has to be empty already
  kNoNewPrivileges,
  kSubreaper,
  kScopeSignals,  ///< Init may signal its own descendants and nobody else, so that it can kill all it may signal.
  kCloseFds,      ///< Close all but the streams, the control socket and what the command's steps need.
  // The command, forked by init.
  kNewSession,  ///< Where there is a terminal it becomes the controlling one.
  kStdio,       ///< Channels come with the streams, and get their numbers at kExec.
  kWorkdir,     ///< text: path, unless the command has its own
  kTraceMe,     ///< Wait until the parent follows this process; no step further without it.
  kLandlockEnforce,
  kTraceFilter,    ///< Stop for the tracer at calls that name files and addresses.
  kSeccomp,        ///< value: 1 with a listener that the parent answers
  kCommandRlimit,  ///< As kRlimit, for what init itself could not live with.
  kExec,
};

/// How a path of the new root is looked up.
enum class Reach : std::uint64_t {
  kGuarded,  ///< Without following links: a directory that the guest can write may be on the way.
  kDirect,   ///< Nothing of the guest's is mounted yet, so there is nothing to guard against.
};

enum class Cover : std::uint64_t {
  kFile,
  kDirectory,
  kWhatFits,  ///< Whichever of the two it is, also behind a link.
  kPresent,   ///< Whichever of the two it is. It has to be there, by this very path.
};

/// The first step of the command's part; everything before it is init's.
inline constexpr Op kFirstCommandOp = Op::kNewSession;

struct Step {
  Op op;
  std::int16_t slot;     ///< An index into the fds that the parent hands over, or -1.
  std::uint32_t text;    ///< Offset of a string, or 0.
  std::uint32_t more;    ///< Offset of a second string, or 0.
  std::uint32_t covers;  ///< 1: the host can take this mount away; for kWatchCovers
  std::uint64_t value;
  std::uint64_t more_value;
};

/// The file descriptors that the parent hands to the child. The command's streams and channels come over the control
/// socket, in one message, the streams first.
inline constexpr int kControlSlot = 0;       ///< SOCK_SEQPACKET to the parent
inline constexpr int kNetworkReadySlot = 1;  ///< pipe: 0 or an errno from the janitor
inline constexpr int kJanitorSlot = 2;       ///< pidfd of the janitor
inline constexpr int kFirstExtraSlot = 3;
inline constexpr int kMaxSlots = 48;

/// What a program that makes the walls (Op::kBecome) is started with: slot N as descriptor kPassedFrom + N. Counted
/// from the step's own slot: this plan, the program that is init inside, arguments, where to write what went wrong, and
/// the contents of files.
inline constexpr int kPassedFrom = 64;
inline constexpr int kBecomePlan = 0;
inline constexpr int kBecomeInit = 1;
inline constexpr int kBecomeArguments = 2;
inline constexpr int kBecomeWords = 3;
inline constexpr int kBecomeFiles = 4;

/// Numbers that channels may have in the command. Until it execs its own descriptors lie above them.
inline constexpr int kFirstChannelNumber = 3;
inline constexpr int kLastChannelNumber = 63;
inline constexpr int kMaxChannels = 16;

/// Said to the init of a live sandbox with the control socket of a further steward.
enum class Hire : char {
  kAhead = 'a',     ///< It has the process of its command ready, under all filters, before there is one.
  kTerminal = 't',  ///< It opens a terminal first, of which that process has to be born with; its command is sent.
};

/// One command, apart from the sandbox that it runs in: the head of a block of its own, with offsets from that head, so
/// that it can be sent to a sandbox that was prepared before the command was known.
struct CommandBlock {
  std::uint64_t wall_ns;        ///< Or kNoDeadline. Of a live sandbox's command; others have that of the plan.
  std::uint32_t size;           ///< Of the whole block.
  std::uint32_t argv;           ///< Offset of uint32_t offsets, ended by 0.
  std::uint32_t envp;           ///< The same.
  std::uint32_t exec_paths;     ///< The same: candidates in the order of PATH.
  std::uint32_t channels;       ///< The same, of the numbers that the channels get, in the order in which they come.
  std::uint32_t workdir;        ///< Offset of a path, or 0: that of the plan.
  std::uint32_t terminal;       ///< 1: its steward opens one for it, in place of streams.
  std::uint16_t rows, columns;  ///< Of that terminal; 0: nobody knows.
  std::uint32_t keeps;          ///< 1: when it exits, what it left running goes on until the sandbox ends.
  std::uint64_t file_size;      ///< Its own limits, of each process; kNoLimit: those that the plan sets.
  std::uint64_t open_files;
  std::uint64_t cpu_seconds;
};
inline constexpr std::uint64_t kNoDeadline = ~std::uint64_t{0};
inline constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

/// The largest that can be sent; others are part of their plan.
inline constexpr std::uint32_t kMostSentCommand = 64 * 1024;

struct LaunchPlan {
  std::uint32_t size;  ///< Of the whole block.
  std::uint32_t step_count;
  std::uint32_t steps;    ///< Offset of Step[step_count].
  std::uint32_t command;  ///< Offset of a CommandBlock, or 0: the parent sends it when it is known.
  std::uint32_t filter;   ///< Offset of sock_filter[filter_length].
  std::uint32_t filter_length;
  std::uint32_t disk_paths;    ///< As CommandBlock::argv: private filesystems whose use is reported at the end.
  std::uint32_t clone_flags;   ///< Of init, without CLONE_INTO_CGROUP.
  std::uint64_t wall_ns;       ///< Or kNoDeadline.
  std::uint32_t init_is_pid1;  ///< 0: no pid namespace; init has to find what is left.
  std::uint32_t scoped;        ///< 1: init, or each steward, can signal its own descendants and nobody else.
  std::uint32_t live;          ///< 1: many commands, each with a steward.
  std::uint32_t terminal;
  std::uint32_t trace_filter;  ///< As filter; for kTraceFilter.
  std::uint32_t trace_filter_length;
  std::uint32_t network_ahead;  ///< 1: the launcher gives init a new network namespace; clone_flags has none.
};

// Access by offset. All offsets come from the parent, which is trusted; the block is read-only for the child.
inline const char* Text(const LaunchPlan& plan, std::uint32_t offset) {
  return reinterpret_cast<const char*>(&plan) + offset;
}
inline const Step* Steps(const LaunchPlan& plan) { return reinterpret_cast<const Step*>(Text(plan, plan.steps)); }
inline const std::uint32_t* Offsets(const LaunchPlan& plan, std::uint32_t offset) {
  return reinterpret_cast<const std::uint32_t*>(Text(plan, offset));
}
inline const CommandBlock* OwnCommand(const LaunchPlan& plan) {
  return plan.command == 0 ? nullptr : reinterpret_cast<const CommandBlock*>(Text(plan, plan.command));
}
inline const char* Text(const CommandBlock& command, std::uint32_t offset) {
  return reinterpret_cast<const char*>(&command) + offset;
}
inline const std::uint32_t* Offsets(const CommandBlock& command, std::uint32_t offset) {
  return reinterpret_cast<const std::uint32_t*>(Text(command, offset));
}
inline const sock_filter* Filter(const LaunchPlan& plan, std::uint32_t offset) {
  return reinterpret_cast<const sock_filter*>(Text(plan, offset));
}

/// What init tells its parent, one datagram each over the control socket; or a steward, over its command's.
enum class ReportKind : std::uint32_t {
  kSetupFailed,  ///< step, error: the command never ran
  kExecFailed,   ///< error: nothing by that name inside, or not executable; takes kStarted back
  kInside,       ///< sent by init when it begins behind walls that another program has made; carries its credentials
  kPrepared,     ///< all steps before the command are done; init waits for the command
  kTerminal,     ///< carries the pseudo-terminal's master
  kListener,     ///< carries the seccomp listener
  kSocketDiag,   ///< carries a socket of NETLINK_SOCK_DIAG in the sandbox's network namespace
  kTraceMe,      ///< sent by the command itself, which waits to be traced; carries its credentials
  kStarted,      ///< sent by the command itself: its own program is the next that runs
  kEnded,        ///< status, usage; of sandbox or command nothing but init or steward is left, but for `left` and
                 ///< `background`
  kDeadline,     ///< it was ended because of wall_ns; usage, as above
  kStopped,      ///< it was ended because the parent said so; usage, as above
  kSurvivors,    ///< a live sandbox was ended because nobody answers for what one of its commands left
  kUncovered,    ///< it was ended because the mount of a step is gone: step; usage, as above
};

inline constexpr ReportKind kLastReportKind = ReportKind::kUncovered;

/// What the parent asks of init, or of a steward, while the command runs; one datagram each over the control socket.
enum class OrderKind : std::uint32_t {
  kSignal,  ///< To the command's process group.
  kResize,  ///< Its terminal.
};
struct Order {
  OrderKind kind;
  std::int32_t signal;
  std::uint16_t rows, columns;
};

struct DiskUse {
  std::uint64_t used_bytes;
  std::uint32_t full_bytes;   ///< 1: no block was left.
  std::uint32_t full_inodes;  ///< 1: no inode was left.
};
inline constexpr int kMaxDisks = 2;

struct Report {
  ReportKind kind;
  std::int32_t step;          ///< Index into the plan's steps.
  std::int32_t error;         ///< errno
  std::int32_t detail;        ///< Which call of the step, counted from 0.
  std::int32_t status;        ///< As from waitpid.
  std::uint16_t left;         ///< 1: something inside is killed, and has not ended.
  std::uint16_t background;   ///< 1: the command left something that goes on, as its `keeps` said.
  std::uint64_t cpu_ns;       ///< Of all processes that were waited for.
  std::uint64_t memory_peak;  ///< Of the largest of them.
  DiskUse disk[kMaxDisks];
};

}  // namespace belljar::plan
