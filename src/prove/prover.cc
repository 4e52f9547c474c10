#include "prove/prover.h"

#include <dirent.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "prove/bystander.h"
#include "prove/judge.h"
#include "prove/stage.h"
#include "sys/files.h"
#include "sys/process.h"

namespace belljar::prove {
namespace {

// Live processes that have the mark among their arguments. A dead one has no arguments any more.
int CountMarked(const std::string& mark) {
  int count = 0;
  DIR* directory = ::opendir("/proc");
  if (directory == nullptr) return 0;
  while (const dirent* entry = ::readdir(directory)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    const std::string line = sys::ReadHead(fmt::format("/proc/{}/cmdline", entry->d_name), 4096);
    if (line.find(mark) != std::string::npos) ++count;
  }
  ::closedir(directory);
  return count;
}

std::vector<std::string> GuestCommand(const Catalog& catalog, const Case& c, const Stage& stage, const Sizes& sizes,
                                      const std::string& mark) {
  std::vector<std::string> argv = {catalog.program, "run", c.id, mark};
  argv.insert(argv.end(), stage.arguments().begin(), stage.arguments().end());
  const std::vector<std::string> limits = sizes.Arguments();
  argv.insert(argv.end(), limits.begin(), limits.end());
  return argv;
}

}  // namespace

std::string_view Name(Finding finding) {
  switch (finding) {
    case Finding::kContained: return "contained";
    case Finding::kEscaped: return "escaped";
    case Finding::kNotPromised: return "not promised";
    case Finding::kVacuous: return "vacuous";
    case Finding::kError: return "error";
  }
  return "error";
}

int Proof::Count(Finding finding) const {
  return static_cast<int>(std::ranges::count(cases, finding, &CaseProof::finding));
}

Prover::Prover(Catalog catalog, std::string secret, ProveOptions options)
    : catalog_(std::move(catalog)),
      secret_(std::move(secret)),
      options_(std::move(options)),
      sizes_(Sizes::For(options_.policy)) {}

bool Prover::Stopped() const {
  if (options_.cancel == nullptr) return false;
  pollfd wait{options_.cancel->fd(), POLLIN, 0};
  return ::poll(&wait, 1, 0) > 0;
}

ControlResult Prover::Control(const Case& c) {
  {
    const std::lock_guard lock(controls_mutex_);
    if (const auto known = controls_.find(c.id); known != controls_.end()) return known->second;
  }
  const int cancel = options_.cancel == nullptr ? -1 : options_.cancel->fd();
  auto tried = RunControl(catalog_, c, secret_, sizes_, cancel);
  ControlResult control = tried ? *std::move(tried) : ControlResult{false, tried.error().Text()};
  const std::lock_guard lock(controls_mutex_);
  return controls_.emplace(c.id, std::move(control)).first->second;
}

constexpr std::uint64_t kBystandersWallNs = 600'000'000'000;

// With company, `damage` says what came of that.
Expected<Result> Prover::RunInside(Engine& engine, Policy policy, const std::vector<std::string>& argv,
                                   std::string& damage) {
  RunOptions how{.cancel = options_.cancel};
  if (options_.company == Company::kNone) return engine.Run(policy, argv, how);
  how.wall_ns = policy.limits.wall_ns;  // The attack's alone.
  policy.limits.wall_ns = std::max(policy.limits.wall_ns, kBystandersWallNs);
  policy.ReadOnly(catalog_.program);  // A live sandbox brings nothing along that it was not opened with.
  auto sandbox = engine.Open(policy);
  if (!sandbox) return std::unexpected(sandbox.error());
  auto bystander = Bystander::Start(*sandbox);
  if (!bystander) return std::unexpected(bystander.error());
  auto result = sandbox->Run(argv, how);
  if (result) damage = (*bystander)->Damage(*result);
  return result;
}

CaseProof Prover::Try(Engine& engine, const Case& c, const ControlResult& control) {
  CaseProof report{.tried = c, .outside = control.text};
  const auto fail = [&](std::string why) {
    report.inside = std::move(why);
    return report;
  };
  auto stage = Stage::Build(catalog_.program, secret_, Stage::Side::kInside);
  if (!stage) return fail(stage.error().Text());
  const std::string mark = "mark=" + sys::MakeRunId();
  Policy policy = sizes_.Apply(options_.policy, c);
  if (c.Has(kNeedsMount)) policy.ReadOnly(stage->shared(), Stage::kSharedInside);
  std::string hurt;
  const auto result = RunInside(engine, policy, GuestCommand(catalog_, c, *stage, sizes_, mark), hurt);
  if (!result) return fail(result.error().Text());
  if (c.Has(kNeedsMount) && (result->verdict == Verdict::kRefused || result->verdict == Verdict::kFailed)) {
    report.finding = Finding::kVacuous;
    report.outside = "this directory can't be mounted here: " + result->message;
    return report;
  }
  Inside inside = ReadInside(c, *result, CountMarked(mark), sizes_.output);
  report.receipt = result->receipt;
  if (inside.kind == Inside::Kind::kFailed) return fail(std::move(inside.text));
  // The canaries have the last word, whatever the guest says of itself.
  if (const std::string damage = stage->Damage(); !damage.empty()) inside = {Inside::Kind::kWorked, 0, damage};
  if (!hurt.empty()) inside = {Inside::Kind::kWorked, 0, hurt};
  if (result->out.data.find(secret_) != std::string::npos) {
    inside = {Inside::Kind::kWorked, 0, "the secret is in its output"};
  }
  report.inside = inside.text;
  if (inside.kind == Inside::Kind::kWorked) {
    report.finding = IsPromised(c, result->receipt) ? Finding::kEscaped : Finding::kNotPromised;
    return report;
  }
  if (!control.worked) {
    report.finding = Finding::kVacuous;
    return report;
  }
  report.finding = Finding::kContained;
  report.guard = HeldBy(c, *result, inside.error);
  return report;
}

void Prover::TryAll(Engine& engine, const std::vector<const Case*>& cases, unsigned workers, Proof& proof,
                    const std::function<void(const CaseProof&)>& done) {
  std::mutex mutex;
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t at = next++; at < cases.size() && !Stopped(); at = next++) {
      const std::uint64_t began = sys::NowNs();
      const Case& c = *cases[at];
      const ControlResult control = Control(c);
      CaseProof report = Try(engine, c, control);
      report.duration_ms = static_cast<double>(sys::NowNs() - began) / 1e6;
      const std::lock_guard lock(mutex);
      if (Stopped()) return;  // What was cut short is no finding.
      if (!report.receipt.guards.empty()) proof.receipt = report.receipt;
      done(report);
      proof.cases.push_back(std::move(report));
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < workers; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

Expected<Proof> Prover::Run(const std::vector<Case>& cases, const std::function<void(const Progress&)>& progress) {
  auto engine = Engine::Open({.backend = options_.backend, .launching = Launching::kSelf});  // As `belljar run` does.
  if (!engine) return std::unexpected(engine.error());
  const std::uint64_t began = sys::NowNs();
  // One harmless run first: a policy that can't be met here is one message, not one for every case.
  const auto first = engine->Run(options_.policy, {catalog_.program, "list"});
  if (!first) return std::unexpected(first.error());
  if (!first->ok()) {
    return std::unexpected(Error{.step = "run a harmless program inside",
                                 .message = first->message.empty() ? "it did not exit well" : first->message,
                                 .hint = "'belljar doctor' says what this host can do"});
  }
  std::vector<const Case*> together;
  std::vector<const Case*> alone;
  for (const Case& c : cases) (c.Has(kNeedsQuiet) ? alone : together).push_back(&c);
  // Those that wait for a deadline first: the short ones fill the gaps.
  std::ranges::stable_sort(together, std::greater{}, [](const Case* c) { return c->Has(kEndedByGuard); });

  Proof proof;
  Progress seen{.total = static_cast<int>(cases.size())};
  const auto done = [&](const CaseProof& report) {
    ++seen.done;
    if (report.finding == Finding::kEscaped) ++seen.escaped;
    progress(seen);
  };
  // More than there are CPUs: many cases only wait.
  const unsigned workers = std::clamp(2 * std::thread::hardware_concurrency(), 2U, 8U);
  TryAll(*engine, together, workers, proof, done);
  TryAll(*engine, alone, 1, proof, done);
  std::ranges::stable_sort(proof.cases, {}, [&](const CaseProof& report) {
    return std::ranges::find(cases, report.tried.id, &Case::id) - cases.begin();
  });
  proof.cancelled = Stopped();
  proof.duration_ms = static_cast<double>(sys::NowNs() - began) / 1e6;
  return proof;
}

}  // namespace belljar::prove
