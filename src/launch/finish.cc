// What a supervisor makes of the end: the last of the streams, what was used, the verdict.
#include <sys/wait.h>

#include <csignal>

#include <fmt/format.h>

#include "base/printable.h"
#include "launch/account.h"
#include "launch/supervision.h"
#include "plan/explain.h"

namespace belljar::launch {

// A slow reader of a command that ended by itself gets all of it; where the run was cut off nobody waits for a reader,
// who may be the reason.
void Supervisor::FinishStreams() {
  const bool by_itself = observed_.killed == KillReason::kNone && observed_.ended.has_value() &&
                         observed_.ended->kind == plan::ReportKind::kEnded;
  if (observed_.ended.has_value() && observed_.ended->background != 0) live_->NoteBackground();
  const bool others = is_command() && live_->others();
  const bool all = pumps_.Finish(by_itself ? Reader::kAwaited : Reader::kHurried, cancel_,
                                 others ? Writers::kAlive : Writers::kDead);
  if (all) return;
  if (observed_.killed == KillReason::kNone) observed_.killed = KillReason::kLostOutput;
  // SECURITY: or each further command of a guest that holds its output could leave a thread here asleep.
  if (is_command()) live_->Abandon(KillReason::kLostOutput);
}

// What was used of the limits, by the cgroup's account; of a command nobody keeps one. When the sandbox ends because of
// a limit, a command may be seen to fail first.
sys::CgroupUsage Supervisor::LookAtLimits() {
  const bool fine =
      observed_.ended && observed_.ended->kind == plan::ReportKind::kEnded && observed_.ended->status == 0;
  if (!where_.cgroup.valid() || (is_command() && fine)) return {};
  const sys::CgroupUsage used = where_.cgroup.Usage();
  observed_.oom_kills = used.oom_kills;
  observed_.processes_refused = used.processes_refused;
  if (!is_command()) return used;
  if (used.oom_kills > 0) live_->Abandon(KillReason::kMemory);
  if (used.processes_refused > 0) live_->Abandon(KillReason::kProcesses);
  const bool killed =
      observed_.ended && WIFSIGNALED(observed_.ended->status) && WTERMSIG(observed_.ended->status) == SIGKILL;
  if (killed && observed_.killed == KillReason::kNone) observed_.killed = live_->reason();
  return {};
}

void Supervisor::Finish(Finished& finished) {
  if (left_ && sandbox_ != nullptr) sandbox_->Leave();
  const bool told = observed_.ended.has_value();
  const Sandbox::Ending ending = told || sandbox_ == nullptr ? Sandbox::Ending{} : sandbox_->Wait();
  if (tracer_ != nullptr) {
    tracer_->Stop();
    finished.record = tracer_->log().Take();
  }
  observed_.init_status = ending.status;
  Result& result = finished.result;
  const sys::CgroupUsage used = LookAtLimits();

  std::string step_text;
  if (observed_.setup_failed) {
    const std::int32_t step = observed_.setup_failed->step;
    step_text = plan::DescribeStep(plan_.plan(), step);
    const bool own_workdir = sandbox_ == nullptr && !policy_.files.workdir.empty();
    if (own_workdir && plan::Steps(plan_.plan())[step].op == plan::Op::kWorkdir) {
      step_text = fmt::format("change to {}", policy_.files.workdir);
    }
  }
  if (observed_.killed == KillReason::kUncovered) {
    step_text = plan::PathOfStep(plan_.plan(), live_ != nullptr ? live_->uncovered() : observed_.uncovered);
  }
  const Policy policy = live_ == nullptr ? policy_ : live_->limits().In(policy_);
  Decide(observed_, policy, step_text, result);
  // Only of a start that nobody else explains: it may have warned of something, and all went well.
  const bool silent = !observed_.started && !told && !observed_.setup_failed && observed_.killed == KillReason::kNone;
  if (const std::string words = silent ? where_.Words() : std::string(); !words.empty()) {
    result.message = fmt::format("{}; the command never ran", base::Printable(words));
  }
  if (left_ || (told && observed_.ended->left != 0)) {
    if (result.message.empty()) result.message = "the command ended";
    result.message +=
        "; a process of it is killed but has not ended yet, as when another run holds a pipe that both have";
  }

  result.usage = Account(observed_, ending, used, limits_);
  result.background = told && observed_.ended->background != 0;
  result.out = pumps_.TakeOut();
  result.err = pumps_.TakeErr();
  // A wall that shows as "file not found" helps nobody who does not think of the wall.
  const std::string& errors = options_.streams == StreamMode::kTerminal ? result.out.data : result.err.data;
  if (depth_ == trace::TraceDepth::kOff && plan_.level >= Level::kKernel && LooksRefused(result, errors)) {
    result.hint = "run again with --trace to see which files or hosts were missing";
  }
  if (options_.streams != StreamMode::kCapture) {
    result.out = {.data = {}, .bytes = result.out.bytes};
    result.err = {.data = {}, .bytes = result.err.bytes};
  }
  notices_.AddTo(result.denials);
  AddLimitDenials(observed_, policy, result);
  result.receipt = plan_.receipt;
  finished.observed = observed_;
}

}  // namespace belljar::launch
