// jail/sweep.h: clean-up that must work without heap and locks, because whoever needs it may be all that is left.
#pragma once

namespace belljar::jail {

enum class Kin : unsigned char {
  kChildren,    ///< Generation by generation; a chain that forks faster than that can outrun it.
  kAllInScope,  ///< All that this process may signal, at once: for a caller whose Landlock scope holds nobody else.
};

/// Kills and reaps all children, and the orphans that become children (the caller is a subreaper), until none is left.
/// False when some are: none has ended for a second, as where somebody outside keeps a killed process asleep in the
/// kernel.
bool KillChildren(Kin kin);

/// Removes a directory with all that is in it, at any depth, without following links. 0 when there is no directory of
/// that name any more, or -1 with errno.
int RemoveTree(const char* path);

/// What must not outlive a run on the host. Offsets are plain arrays so that a clone without heap can use it.
struct Leftovers {
  static constexpr int kMaxCgroups = 6;
  char cgroups[kMaxCgroups][512];  ///< Directories; empty string ends the list.
  char directory[512];             ///< A private directory of the run, or empty.
};

enum class Patience : unsigned char {
  kSome,  ///< Somebody may wait for it: five seconds.
  kLong,  ///< Nobody does, and what is killed may sleep on: an hour.
};

/// Kills all in the cgroups, removes them and the directory; retries for as long as that.
void RemoveLeftovers(const Leftovers& leftovers, Patience patience);

/// Descriptors of the janitor.
struct JanitorEnds {
  int lifeline;       ///< Closes when its owner dies.
  int network_ready;  ///< Takes 0 or an errno once a network namespace is made; -1: none is wanted.
};

/// Body of the janitor: makes the network namespace, waits until `lifeline` closes, removes what is left by then; with
/// long patience when a byte came before. Never returns.
[[noreturn]] void Janitor(const Leftovers& leftovers, JanitorEnds ends);

}  // namespace belljar::jail
