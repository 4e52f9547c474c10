// launch/supervisor.h: stays with a sandbox until it is gone: streams, deadlines, limits, refused calls, verdict.
#pragma once

#include <atomic>
#include <vector>

#include <belljar/policy.h>
#include <belljar/result.h>
#include <belljar/run.h>

#include "launch/sandbox.h"
#include "launch/trace_log.h"
#include "launch/verdict.h"

namespace belljar::launch {

/// What came of a launch. When set-up failed the caller may want to know the step to try another form.
struct Outcome {
  Result result;
  Observed observed;
  std::vector<Access> accesses;  ///< Of a traced run.
  std::uint64_t left_out = 0;    ///< Accesses that found no room.
};

struct Supervised {
  const plan::CompiledPlan& plan;
  const Policy& policy;  ///< From which the plan was compiled.
  const RunOptions& options;
  int cancel = -1;  ///< Ends it when it is readable; -1: as the options say.
};

/// Blocks until the sandbox is gone. The plan has to be one for a traced run when `depth` is not kOff.
Outcome Supervise(Sandbox& sandbox, const Supervised& what, TraceDepth depth = TraceDepth::kOff);

/// What those who supervise a live sandbox and its commands tell each other. By any thread.
class LiveState {
 public:
  static Expected<LiveState> Make();
  LiveState(LiveState&& other) noexcept
      : end_(std::move(other.end_)),
        ended_(std::move(other.ended_)),
        reason_(other.reason_.load()),
        uncovered_(other.uncovered_.load()) {}
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

 private:
  LiveState(CancelToken end, CancelToken ended) : end_(std::move(end)), ended_(std::move(ended)) {}
  CancelToken end_, ended_;
  std::atomic<KillReason> reason_ = KillReason::kNone;
  std::atomic<std::int32_t> uncovered_ = -1;
};

/// Stays with a live sandbox until it is gone: all but its commands.
void SuperviseLive(Sandbox& sandbox, const plan::CompiledPlan& plan, const Policy& policy, LiveState& live);
/// Blocks until one command of it is over. `connection` is from Sandbox::Add.
Outcome SuperviseCommand(const Sandbox& sandbox, Connection& connection, const Supervised& what, LiveState& live);

}  // namespace belljar::launch
