// launch/live_state.h: what those who supervise a live sandbox and its commands tell each other. By any thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include <belljar/error.h>
#include <belljar/run.h>

#include "launch/connection.h"
#include "launch/limits_in_force.h"
#include "launch/notices.h"
#include "launch/verdict.h"

namespace belljar::launch {

class LiveState {
 public:
  static Expected<std::unique_ptr<LiveState>> Make(const Limits& limits);
  LiveState(const LiveState&) = delete;
  LiveState& operator=(const LiveState&) = delete;
  /// Why the sandbox ended, as far as that is known: the first that was noted.
  KillReason reason() const { return reason_; }
  void Note(KillReason reason) {
    KillReason none = KillReason::kNone;
    reason_.compare_exchange_strong(none, reason);
  }
  /// Which step's mount is gone, where that is why.
  std::int32_t uncovered() const { return uncovered_; }
  void NoteUncovered(std::int32_t step) {
    uncovered_ = step;
    Note(KillReason::kUncovered);
  }
  /// Has the sandbox ended. With kNone its init may still say why.
  void Abandon(KillReason reason) {
    Note(reason);
    end_.Cancel();
  }
  const CancelToken& end() const { return end_; }
  /// Nothing of it is left.
  void Ended(KillReason reason) {
    Note(reason);
    ended_.Cancel();
  }
  void AwaitEnd() const;
  LimitsInForce& limits() { return limits_; }
  /// A command that is handed over, from before that until all is known of it.
  class Running {
   public:
    explicit Running(LiveState& live) : live_(live) { ++live_.running_; }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() { --live_.running_; }

   private:
    LiveState& live_;
  };
  /// A steward that waits, with the process of a command to come. None where there is none, or it has died.
  std::optional<Connection> TakeReady();
  void KeepReady(Connection steward);
  bool has_ready();
  /// Whether it is that process. Like init that lets nobody look into it, as long as it is a copy of it.
  bool IsReady(pid_t pid);
  void NoteBackground() { background_ = true; }
  /// Of a command whose processes have ended: whether there may be others in the sandbox, who have what it gave away.
  bool others() const { return running_ > 1 || background_; }
  SharedMemoryBudget& shared_memory() { return shared_memory_; }

 private:
  LiveState(CancelToken end, CancelToken ended, const Limits& limits)
      : end_(std::move(end)), ended_(std::move(ended)), limits_(limits), shared_memory_(limits.memory) {}
  CancelToken end_, ended_;
  std::atomic<KillReason> reason_ = KillReason::kNone;
  std::atomic<std::int32_t> uncovered_ = -1;
  std::atomic<int> running_ = 0;
  std::atomic<bool> background_ = false;
  LimitsInForce limits_;
  SharedMemoryBudget shared_memory_;
  std::mutex ready_mutex_;
  std::optional<Connection> ready_;  ///< Guarded by ready_mutex_, as is what follows.
  pid_t ready_pid_ = 0;              ///< Of the process; 0 before it has said so.
};

}  // namespace belljar::launch
