// launch/pumps.h: the streams of one run between the guest and the caller.
//
// SECURITY: a guest can hold the lock of its own pipes for as long as it lives (by splice() from something that never
// comes), and whoever reads, writes or closes the other end sleeps meanwhile, deaf to signals. So nobody does who has
// anything else to do: while the guest lives, a thread of their own alone touches them, and it is waited for only when
// the guest is dead. Runs that are over before they have said anything worth a thread get none.
//
// Used by one thread, the supervisor's.
#pragma once

#include <poll.h>

#include <array>
#include <cstdint>
#include <memory>

#include <belljar/run.h>

#include "base/unique_fd.h"
#include "launch/capture.h"
#include "launch/connection.h"

namespace belljar::launch {

/// Whether the rest of the output waits for who reads it.
enum class Reader : std::uint8_t { kAwaited, kHurried };
/// Whether somebody may still write, and hold the pipe: what is left then is what is in it now.
enum class Writers : std::uint8_t { kDead, kAlive };

class Pumps {
 public:
  Pumps();
  Pumps(const Pumps&) = delete;
  Pumps& operator=(const Pumps&) = delete;
  ~Pumps();

  /// Takes the connection's ends. `options` outlives this; `limit` is of each output.
  void Connect(Connection& connection, const RunOptions& options, std::uint64_t limit);
  /// Instead of that: all three are one terminal.
  void ConnectTerminal(base::UniqueFd master, const RunOptions& options, std::uint64_t limit);

  /// What may be waited for before there is a thread: when one of these is ready there is something for it to do.
  std::array<pollfd, 3> Awaited() const;
  /// Starts the thread. False when there is none to be had.
  bool Begin();
  bool begun() const;
  /// Readable when the thread has something to say; only after Begin.
  int news_fd() const;
  /// The guest wrote more than the limit to an output that is streamed. It is not read any more.
  bool over_limit() const;

  /// When the command is over: moves what it still left in its pipes, and gives the caller's terminal back. A slow
  /// reader is waited for or not; `cancel` (or -1) ends that when it is readable. False when the thread does not come
  /// back, because somebody who lives holds the other end of a pipe: what it had read is lost.
  [[nodiscard]] bool Finish(Reader reader, int cancel, Writers writers = Writers::kDead);
  /// After Finish: what was kept of each.
  Output TakeOut();
  Output TakeErr();

 private:
  struct State;
  static void Tell(State& state, const OutputCallback& told);
  static void Work(State& state);
  static bool Turn(State& state);
  static void Drain(State& state);

  std::shared_ptr<State> state_;  ///< The thread's too: one that never comes back keeps it.
};

}  // namespace belljar::launch
