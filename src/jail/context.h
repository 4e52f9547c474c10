// jail/context.h: what the child side knows while it executes a plan. No heap, no locks, no stdio below this folder.
#pragma once

#include <poll.h>
#include <time.h>

#include <cstddef>

#include "plan/launch_plan.h"

namespace belljar::jail {

/// The caller's argument and environment strings as they lie in memory, to be wiped in the child.
struct CallerStrings {
  char* begin;
  char* end;
};

struct Context {
  const plan::LaunchPlan& plan;
  int fds[plan::kMaxSlots];
  CallerStrings caller;
  const plan::CommandBlock* command = nullptr;  ///< The plan's, or the one that was sent.
  int root = -1;                                ///< Directory that all paths of the plan are resolved in.
  int proc = -1;                                ///< The host's /proc, until the command starts.
  int landlock = -1;                            ///< Ruleset under construction.
  int terminal = -1;                            ///< The terminal's slave end, as standard streams of the command.
  int terminals = -1;                           ///< A filesystem of them, for those of commands.
  int channels[plan::kMaxChannels] = {};        ///< Of the command, as it has them until it execs.
  int channel_count = 0;
  int mounts = -1;                               ///< The sandbox's table of mounts, where covers are watched.
  bool covered = false;                          ///< There are covers that the host can take away.
  unsigned covers = 0;                           ///< How many of them held when last looked at.
  std::uint64_t covers_due = plan::kNoDeadline;  ///< When to look at them again.
  int signals = -1;                              ///< signalfd of SIGCHLD and SIGTERM.
  int parent = 0;                                ///< Pid of the parent at the start; 0 from inside a pid namespace.
  bool steward = false;                          ///< Of one command in a live sandbox, instead of init.
  bool in_proc = false;                          ///< The working directory is the new root's /proc.
  int umask = -1;                                ///< For the command; -1: as its caller's.
  int detail = 0;                                ///< Which call of the running step, for the failure report.
};

/// Opens a pseudo-terminal of the sandbox for the command and sends its master to the parent; 0, or -1 with errno.
int OpenTerminal(Context& context);
int ResizeTerminal(const Context& context, unsigned short rows, unsigned short columns);

/// Executes one step; 0, or -1 with errno.
int DoIdentityStep(Context& context, const plan::Step& step);
int DoFileStep(Context& context, const plan::Step& step);
int DoFilterStep(Context& context, const plan::Step& step);
int DoStep(Context& context, const plan::Step& step);

/// Writes a whole small file below `directory`; 0, or -1 with errno.
int WriteFile(int directory, const char* path, const char* text, std::size_t length, int flags, unsigned mode);

/// Sends a report, with a descriptor when `fd` is not negative; 0, or -1 with errno, as when the parent is gone.
int SendReport(const Context& context, const plan::Report& report, int fd);

/// Starts the command (a child of init) and returns its pid, or -1 after having reported why not.
int StartCommand(Context& context);

/// Waits for descriptors on the control socket, and the byte that they come with; how many, at most `most` (of
/// plan::kMaxSlots), or -1 with errno. `flags` as recvmsg's.
int ReceiveDescriptors(const Context& context, int* fds, int most, int flags, char* word = nullptr);

/// Waits for the command on the control socket. False when the parent is gone instead.
bool ReceiveCommand(Context& context);

/// The same for a command that nobody knows yet: the child does all of its steps, and waits for its program. Returns
/// when that has begun, or -1 with errno. A steward then has its command, as far as it needs it.
int PrepareCommand(Context& context);

/// What the parent wants, by the control socket as polled: it has no more to say when it wants all to end, and is gone
/// when its end is closed or its death signal came.
enum class Wish { kNone, kEnd, kGone };
inline constexpr short kWishEvents = POLLRDHUP;
Wish ParentsWish(const Context& context, const pollfd& control);

/// What InitLoop waits on; before the command starts, because without it nobody would see it end. -1 with errno.
int WatchSignals();

std::uint64_t NowNs();
/// How long that is from now.
struct timespec Until(std::uint64_t time);

/// Sees to it that all covers are there, and has `mounts` tell (kMountEvents) of each that goes; 0, or -1 with errno.
int WatchCovers(Context& context);
inline constexpr short kMountEvents = POLLPRI;
/// Looks at them when that is due, by `covers_due`. False when one is lost: `report` says which.
bool CoversHold(Context& context, plan::Report& report);

/// Takes 0 to 2, so that nothing that is opened later gets the numbers of the command's streams; 0, or -1 with errno.
int TakeStreamNumbers();

/// Starts a steward for each command that the parent asks for, until it wants the end; never returns.
[[noreturn]] void LiveLoop(Context& context);

/// The exit status of a steward that could not end its command.
inline constexpr int kSurvivors = 1;

/// Ends all that is this process's to end, and tells: init, or the steward of one command.
[[noreturn]] void Finish(Context& context, plan::Report* report);

/// Reaps until the command ends, the deadline passes or the parent wants it; never returns.
[[noreturn]] void InitLoop(Context& context, int command);

}  // namespace belljar::jail
