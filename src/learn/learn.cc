#include "learn/learn.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "backend/attempt.h"
#include "learn/tree_copy.h"
#include "plan/compile.h"
#include "sys/host_facts.h"
#include "trace/grants.h"
#include "trace/sensitive.h"

namespace belljar::learn {
namespace {

constexpr unsigned kMostTrials = 64;
constexpr int kMostRounds = 4;  // How often what a trial was refused is granted and tried again.
constexpr auto kClockTick = std::chrono::milliseconds(12);

// What the guest sees without a grant, read off the plan itself.
class Shown {
 public:
  Shown(const Policy& policy, const std::vector<std::string>& argv, const sys::HostFacts& facts, const Caller& caller)
      : compiled_(
            plan::Compile({.policy = policy, .facts = facts, .caller = caller, .argv = argv, .run_id = "learn"})) {}

  bool operator()(const std::string& path) const {
    if (!compiled_) return false;
    const plan::LaunchPlan& plan = compiled_->plan();
    const bool bare = compiled_->form == plan::Form::kLandlockOnly;
    return std::any_of(plan::Steps(plan), plan::Steps(plan) + plan.step_count, [&](const plan::Step& step) {
      const std::string_view text = plan::Text(plan, step.text);
      switch (step.op) {
        case plan::Op::kBind: return sys::IsWithin(path, text) && text == plan::Text(plan, step.more);
        case plan::Op::kSymlink: return sys::IsWithin(path, text);  // To what is shown under its own name.
        case plan::Op::kFile: return path == text;
        case plan::Op::kLandlockAllow: return bare && sys::IsWithin(path, text);
        default: return false;
      }
    });
  }

 private:
  std::expected<plan::CompiledPlan, plan::CompileError> compiled_;
};

class Learner {
 public:
  explicit Learner(const LearnRequest& request)
      : request_(request),
        facts_(sys::ReadHostFacts()),
        caller_(Caller::OfThisProcess()),
        directory_(request.policy.files.workdir.empty() ? caller_.directory : request.policy.files.workdir) {}

  Expected<Lesson> Run();

 private:
  void Say(const std::string& line) const {
    if (request_.progress) request_.progress(line);
  }
  bool Cancelled() const { return lesson_.audit.verdict == Verdict::kCancelled || cancelled_; }
  Expected<void> TakeSnapshot();
  Expected<void> Audit();
  Candidates Understand();
  Expected<void> CopyFor(const Grant& grant, const std::string& target) const;
  Policy PolicyOf(const std::vector<Grant>& grants) const;
  Expected<backend::Attempt> Try(const std::vector<Grant>& grants, trace::TraceDepth depth);
  bool Passes(const Result& result) const {
    return result.verdict == lesson_.audit.verdict && result.exit_code == lesson_.audit.exit_code;
  }
  bool SameAsBaseline(const Result& result) const;
  Expected<bool> Verify(std::vector<Grant>& grants, const std::vector<Grant>& directories);
  Expected<void> Minimize(std::vector<Grant>& grants);
  void Keep(std::vector<Grant> grants, Standing standing);

  const LearnRequest& request_;
  sys::HostFacts facts_;
  const Caller caller_;
  std::string directory_;  // Where the example runs.
  std::optional<ScratchDirectory> scratch_;
  std::string scratch_path_;
  bool snapshot_ = false;  // directory_ as it was before, in the scratch directory.
  std::uint64_t began_ = 0;
  backend::Attempt audit_;
  Result baseline_;
  bool compares_output_ = true;
  bool cancelled_ = false;
  Lesson lesson_;
};

bool MadeSince(const std::string& path, std::uint64_t when) {
  if (sys::LinkStatus(path).kind == sys::FileKind::kAbsent) return true;
  return sys::BirthNs(path).value_or(0) > when;
}

// Trials start from what was there before the example ran, as far as its own directory goes.
Expected<void> Learner::TakeSnapshot() {
  auto scratch = ScratchDirectory::Make();
  if (!scratch) return std::unexpected(scratch.error());
  scratch_.emplace(std::move(*scratch));
  scratch_path_ = scratch_->path();
  if (trace::IsTooBroad(directory_, trace::HomeOf(caller_))) return {};
  if (auto copied = CopyTree(directory_, scratch_path_ + "/before", {}); !copied) {
    RemoveTree(scratch_path_ + "/before");
    return {};
  }
  snapshot_ = true;
  return {};
}

Expected<void> Learner::Audit() {
  Policy policy = request_.policy;
  policy.level = Level::kProcess;
  policy.min_level = Level::kProcess;
  policy.files.mounts.clear();
  policy.files.hide.clear();
  policy.files.system = SystemFiles::kUsr;
  policy.files.workdir = directory_;
  RunOptions options;
  options.input = request_.input;
  options.cancel = request_.cancel;
  const auto run = [&] {
    return backend::RunWithFallback({.policy = policy,
                                     .argv = request_.argv,
                                     .options = options,
                                     .caller = caller_,
                                     .depth = trace::TraceDepth::kUses},
                                    facts_);
  };
  began_ = sys::FileClockNs();
  std::this_thread::sleep_for(kClockTick);  // What is made from now on is younger by the clock of files as well.
  auto attempt = run();
  const bool no_namespaces = !facts_.user_namespaces && !facts_.privileged;
  if (attempt && attempt->result.verdict == Verdict::kRefused && no_namespaces) {
    lesson_.notes.emplace_back("no network namespace can be had here: the example ran with the host's network");
    policy.DangerouslyShareHostNetwork();
    attempt = run();
  }
  if (!attempt) return std::unexpected(attempt.error());
  audit_ = std::move(*attempt);
  lesson_.audit = std::move(audit_.result);
  if (audit_.record.left_out > 0) {
    lesson_.notes.push_back(fmt::format("{} uses were too many to record; a grant may be missing for some of them",
                                        audit_.record.left_out));
  }
  return {};
}

Candidates Learner::Understand() {
  Policy policy = request_.policy;
  const Shown shown(policy, request_.argv, facts_, caller_);
  const CandidateScene scene{
      .home = trace::HomeOf(caller_),
      .private_directory = audit_.private_directory,
      .shown = [&](const std::string& path) { return shown(path); },
      .kind = [](const std::string& path) { return sys::LinkStatus(path).kind; },
      .made_by_run = [&](const std::string& path) { return MadeSince(path, began_); },
  };
  return FindCandidates(audit_.record.accesses, scene);
}

Policy Learner::PolicyOf(const std::vector<Grant>& grants) const {
  Policy policy = request_.policy;
  bool uses_directory = false;
  for (const Grant& grant : grants) {
    policy.files.mounts.push_back(grant.mount);
    uses_directory |= sys::IsWithin(grant.mount.target, directory_);
  }
  if (policy.files.workdir.empty() && uses_directory && directory_ != "/") policy.files.workdir = directory_;
  return policy;
}

Expected<void> Learner::CopyFor(const Grant& grant, const std::string& target) const {
  if (snapshot_ && sys::IsWithin(grant.mount.source, directory_)) {
    return CopyTree(scratch_path_ + "/before" + grant.mount.source.substr(directory_.size()), target, {});
  }
  return CopyTree(grant.mount.source, target, {}, [&](const std::string& path) { return MadeSince(path, began_); });
}

Expected<backend::Attempt> Learner::Try(const std::vector<Grant>& grants, trace::TraceDepth depth) {
  Policy policy = PolicyOf(grants);
  const std::string copies = scratch_path_ + "/trial";
  std::error_code error;
  for (std::size_t i = 0; i < policy.files.mounts.size(); ++i) {
    Mount& mount = policy.files.mounts[i];
    const auto own = std::ranges::find(grants, mount.target, [](const Grant& g) { return g.mount.target; });
    if (mount.access != belljar::Access::kReadWrite || own == grants.end()) continue;
    const std::string copy = fmt::format("{}-{}", copies, i);
    if (auto copied = CopyFor(*own, copy); !copied) return std::unexpected(copied.error());
    mount.source = copy;
  }
  RunOptions options;
  options.input = request_.input;
  options.cancel = request_.cancel;
  ++lesson_.trials;
  auto attempt = backend::RunWithFallback(
      {.policy = policy, .argv = request_.argv, .options = options, .caller = caller_, .depth = depth}, facts_);
  for (std::size_t i = 0; i < policy.files.mounts.size(); ++i) RemoveTree(fmt::format("{}-{}", copies, i));
  if (attempt && attempt->result.verdict == Verdict::kCancelled) cancelled_ = true;
  return attempt;
}

bool Learner::SameAsBaseline(const Result& result) const {
  return Passes(result) &&
         (!compares_output_ || (result.out.data == baseline_.out.data && result.out.bytes == baseline_.out.bytes));
}

// Finds grants under which it passes, starting from `grants`. False when there are none.
Expected<bool> Learner::Verify(std::vector<Grant>& grants, const std::vector<Grant>& directories) {
  bool widened = directories.empty();
  for (int round = 1; round <= kMostRounds; ++round) {
    Say(fmt::format("trial {}: level kernel with {} grants", lesson_.trials + 1, grants.size()));
    auto attempt = Try(grants, trace::TraceDepth::kRefusals);
    if (!attempt) return std::unexpected(attempt.error());
    const Policy policy = PolicyOf(grants);
    trace::AddDenials(attempt->record, attempt->exec_failed, policy, request_.argv, caller_, attempt->result);
    lesson_.verified = attempt->result;
    baseline_ = std::move(attempt->result);
    if (Passes(baseline_) || cancelled_ || baseline_.verdict == Verdict::kRefused) break;
    const std::size_t before = grants.size();
    if (!widened) {
      grants.insert(grants.end(), directories.begin(), directories.end());
      widened = true;
    } else {
      // What the audit could not see: other paths are taken inside than outside.
      const trace::GrantScene scene{.policy = policy,
                                    .directory = caller_.directory,
                                    .home = trace::HomeOf(caller_),
                                    .can_move_mounts = baseline_.receipt.form != "landlock-only"};
      for (const trace::Access& access : attempt->record.accesses) {
        const auto mount = trace::FindGrant(access, scene);
        if (mount) grants.push_back({*mount, fmt::format("{} {}", access.operation, access.given)});
      }
    }
    DropCovered(grants);
    const auto same = [](const Grant& a, const Grant& b) { return a.mount.target == b.mount.target; };
    std::ranges::stable_sort(grants, {}, [](const Grant& g) { return g.mount.target; });
    grants.erase(std::unique(grants.begin(), grants.end(), same), grants.end());
    if (grants.size() == before) break;
  }
  return Passes(baseline_);
}

Expected<void> Learner::Minimize(std::vector<Grant>& grants) {
  auto again = Try(grants, trace::TraceDepth::kOff);
  if (!again) return std::unexpected(again.error());
  if (!SameAsBaseline(again->result)) {
    compares_output_ = false;
    lesson_.notes.emplace_back("its output differs from run to run, so only its exit status was compared");
  }
  for (std::size_t i = grants.size(); i-- > 0 && !cancelled_;) {
    if (grants[i].durable) continue;
    if (lesson_.trials >= kMostTrials) {
      lesson_.notes.push_back(fmt::format("{} trials were not enough to try each grant", kMostTrials));
      return {};
    }
    std::vector<Grant> fewer = grants;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    Say(fmt::format("trial {}: without {}", lesson_.trials + 1, grants[i].mount.target));
    auto attempt = Try(fewer, trace::TraceDepth::kOff);
    if (!attempt) return std::unexpected(attempt.error());
    if (SameAsBaseline(attempt->result)) {
      lesson_.dropped.push_back(grants[i]);
      grants = std::move(fewer);
      continue;
    }
    if (grants[i].mount.access != belljar::Access::kReadWrite) continue;
    std::vector<Grant> weaker = grants;
    weaker[i].mount.access = belljar::Access::kReadOnly;
    Say(fmt::format("trial {}: with {} read-only", lesson_.trials + 1, grants[i].mount.target));
    attempt = Try(weaker, trace::TraceDepth::kOff);
    if (!attempt) return std::unexpected(attempt.error());
    if (SameAsBaseline(attempt->result)) grants = std::move(weaker);
  }
  return {};
}

void Learner::Keep(std::vector<Grant> grants, Standing standing) {
  lesson_.policy = PolicyOf(grants);
  lesson_.grants = std::move(grants);
  lesson_.standing = standing;
}

Expected<Lesson> Learner::Run() {
  if (auto made = TakeSnapshot(); !made) return std::unexpected(made.error());
  Say("audit: running the example with all of the host's files in sight");
  if (auto done = Audit(); !done) return std::unexpected(done.error());
  if (!lesson_.audit.ok()) {
    lesson_.standing = Standing::kAuditFailed;
    return std::move(lesson_);
  }
  Candidates found = Understand();
  lesson_.withheld = std::move(found.withheld);
  lesson_.addresses = std::move(found.addresses);
  std::vector<Grant> grants = std::move(found.files);
  const bool writes =
      std::ranges::any_of(grants, [](const Grant& grant) { return grant.mount.access == belljar::Access::kReadWrite; });
  const bool bare = !facts_.user_namespaces && !facts_.privileged;
  if (request_.verification == Verification::kOff || (writes && bare)) {
    if (bare && request_.verification == Verification::kOn) {
      lesson_.notes.emplace_back("not verified: without namespaces trials would write into the real files");
    }
    grants.insert(grants.end(), found.directories.begin(), found.directories.end());
    DropCovered(grants);
    Keep(std::move(grants), Standing::kUnverified);
    return std::move(lesson_);
  }
  const auto passes = Verify(grants, found.directories);
  if (passes && !*passes) {
    Keep(std::move(grants), Standing::kFails);
    return std::move(lesson_);
  }
  auto done = passes ? Minimize(grants) : Expected<void>(std::unexpected(passes.error()));
  if (!done) {
    lesson_.notes.push_back("not verified: " + done.error().Text());
    Keep(std::move(grants), Standing::kUnverified);
    return std::move(lesson_);
  }
  Keep(std::move(grants), cancelled_ ? Standing::kUnverified : Standing::kMinimal);
  return std::move(lesson_);
}

}  // namespace

std::string_view Name(Standing standing) {
  switch (standing) {
    case Standing::kMinimal: return "minimal";
    case Standing::kUnverified: return "unverified";
    case Standing::kFails: return "fails";
    case Standing::kAuditFailed: return "audit_failed";
  }
  return "invalid";
}

Expected<Lesson> Learn(const LearnRequest& request) {
  if (const std::optional<Error>& mistake = request.policy.error(); mistake) return std::unexpected(*mistake);
  if (auto good = request.policy.Check(); !good) return std::unexpected(good.error());
  return Learner(request).Run();
}

}  // namespace belljar::learn
