#include "backend/pool.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "plan/compile.h"
#include "plan/hidden.h"
#include "plan/protect.h"
#include "sys/process.h"

namespace belljar::backend {
namespace {

constexpr std::size_t kMostShapes = 16;
constexpr std::size_t kMostUsed =
    32;  // More wait for their end than this: whoever retires the next one ends it itself.
constexpr std::chrono::seconds kIdle{10};
constexpr std::chrono::milliseconds kFirstPause{50};

// The environment is the command's and comes with it.
bool SameShape(const Policy& a, const Policy& b) {
  return a.level == b.level && a.min_level == b.min_level && a.limits == b.limits && a.files == b.files &&
         a.network == b.network && a.host_network_granted() == b.host_network_granted();
}

std::vector<Prepared::Source> LookAtSources(const Policy& policy, const plan::CompiledPlan& plan) {
  std::vector<Prepared::Source> sources;
  const auto look = [&](const std::string& path) {
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0) status = {};
    sources.push_back({status.st_dev, status.st_ino});
  };
  for (const Mount& mount : policy.files.mounts) look(mount.source);
  for (const std::string& path : plan.held) look(path);
  return sources;
}

Expected<std::unique_ptr<Prepared>> Make(const Policy& policy, const sys::HostFacts& facts,
                                         launch::Launcher* launcher) {
  auto prepared = std::make_unique<Prepared>();
  auto plan = plan::Compile({.policy = policy,
                             .facts = facts,
                             .caller = {},
                             .argv = {},
                             .command = plan::CommandKnown::kLater,
                             .init_of = launcher != nullptr ? plan::InitOf::kLauncher : plan::InitOf::kCaller,
                             .run_id = sys::MakeRunId()});
  if (!plan) return std::unexpected(plan.error().error);
  if (plan->form != plan::Form::kNamespaces) {
    return std::unexpected(Error{.step = "prepare a sandbox",
                                 .message = "only sandboxes with namespaces of their own can be made ahead",
                                 .hint = "run without a pool"});
  }
  prepared->plan = std::move(*plan);
  prepared->sources = LookAtSources(policy, prepared->plan);
  auto sandbox = launch::Sandbox::Prepare(prepared->plan, {.cgroups = facts.cgroups, .launcher = launcher});
  if (!sandbox) return std::unexpected(sandbox.error());
  prepared->sandbox.emplace(std::move(*sandbox));
  return prepared;
}

}  // namespace

Pool::~Pool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::size_t Pool::Ready() const {
  std::size_t count = 0;
  for (const Shape& shape : shapes_) count += shape.ready.size();
  return count;
}

// Not const: the least recently used shape makes room for a new one.
Pool::Shape& Pool::Find(const Policy& policy, const sys::HostFacts& facts) {
  const auto found = std::ranges::find_if(shapes_, [&](const Shape& s) { return SameShape(s.policy, policy); });
  if (found != shapes_.end()) {
    found->last_used = Clock::now();
    return *found;
  }
  if (shapes_.size() >= kMostShapes) {
    const auto oldest = std::ranges::min_element(shapes_, {}, &Shape::last_used);
    if (&*oldest != making_ && oldest->awaited == 0) {
      for (auto& prepared : oldest->ready) used_.push_back(std::move(prepared));
      shapes_.erase(oldest);
    }
  }
  Shape& shape = shapes_.emplace_back();
  shape.policy = policy;
  shape.facts = facts;
  shape.last_used = Clock::now();
  return shape;
}

std::unique_ptr<Prepared> Pool::Take(const Policy& policy, const sys::HostFacts& facts, const std::string& home) {
  std::unique_ptr<Prepared> taken;
  bool hurry = false;
  {
    const std::lock_guard lock(mutex_);
    Shape& shape = Find(policy, facts);
    if (shape.ready.empty()) {
      // More are taken at once than were there: one more from now on.
      shape.wanted = std::min(shape.wanted + 1, most_);
    } else {
      taken = std::move(shape.ready.front());
      shape.ready.pop_front();
    }
    StartThread();
    hurry = shape.ready.empty();
  }
  // While others are ready the next one is made when this run is over (Retire): not beside it, where it would slow it.
  if (hurry) work_.notify_one();
  const bool stale = taken && (LookAtSources(policy, taken->plan) != taken->sources ||
                               (taken->plan.protects && plan::FindGuarded(policy, home) != taken->plan.guarded) ||
                               (taken->plan.hidden && !plan::IsAsBefore(*taken->plan.hidden)));
  if (stale) {
    Retire(std::move(taken));
    return nullptr;
  }
  return taken;
}

void Pool::Retire(std::unique_ptr<Prepared> used) {
  {
    const std::lock_guard lock(mutex_);
    if (thread_.joinable() && used_.size() < kMostUsed) used_.push_back(std::move(used));
  }
  work_.notify_one();
}

Expected<void> Pool::Fill(const Policy& policy, const sys::HostFacts& facts, std::size_t count) {
  std::unique_lock lock(mutex_);
  Shape& shape = Find(policy, facts);
  ++shape.awaited;
  shape.failure.reset();
  shape.wanted = std::clamp<std::size_t>(count, shape.wanted, most_);
  const std::size_t enough = std::min(count, most_);
  StartThread();
  work_.notify_one();
  ready_.wait(lock, [&] { return shape.failure.has_value() || shape.ready.size() >= enough; });
  --shape.awaited;
  shape.last_used = Clock::now();
  work_.notify_one();  // Others that wait may have what this one needs no more.
  if (shape.ready.size() >= enough) return {};
  return std::unexpected(shape.failure.value_or(Error{.step = "prepare sandboxes", .message = "none could be made"}));
}

void Pool::StartThread() {
  if (!thread_.joinable()) thread_ = std::thread([this] { Work(); });
}

Pool::Shape* Pool::NextToFill() {
  if (Ready() >= most_) return nullptr;
  return MostUrgent();
}

// One that somebody waits for goes first, then the one used last: so of two that want all both get it, in turn.
Pool::Shape* Pool::MostUrgent() {
  const auto now = Clock::now();
  const auto urgency = [](const Shape& shape) { return std::pair(shape.awaited > 0, shape.last_used); };
  Shape* next = nullptr;
  for (Shape& shape : shapes_) {
    if (shape.ready.size() >= shape.wanted || (shape.failure && now < shape.retry_at)) continue;
    if (next == nullptr || urgency(shape) > urgency(*next)) next = &shape;
  }
  return next;
}

void Pool::MakeRoom() {
  if (Ready() < most_) return;
  const Shape* const next = MostUrgent();
  if (next == nullptr || next->awaited == 0) return;
  Shape* from = nullptr;
  for (Shape& shape : shapes_) {
    if (&shape == next || shape.ready.empty()) continue;
    if (from == nullptr || shape.last_used < from->last_used) from = &shape;
  }
  if (from == nullptr) return;
  used_.push_back(std::move(from->ready.front()));
  from->ready.pop_front();
}

Pool::Clock::time_point Pool::NextLook() const {
  auto next = Clock::now() + kIdle;
  for (const Shape& shape : shapes_) {
    if (shape.failure && shape.ready.size() < shape.wanted) next = std::min(next, shape.retry_at);
  }
  return next;
}

void Pool::MakeOne(std::unique_lock<std::mutex>& lock, Shape& shape) {
  making_ = &shape;
  const Policy policy = shape.policy;
  const sys::HostFacts facts = shape.facts;
  lock.unlock();
  auto made = Make(policy, facts, launcher_);
  lock.lock();
  making_ = nullptr;
  if (made) {
    shape.ready.push_back(std::move(*made));
    shape.failure.reset();
    shape.pause = {};
  } else {
    shape.failure = made.error();
    shape.pause = std::clamp<Clock::duration>(shape.pause * 2, kFirstPause, kIdle);
    shape.retry_at = Clock::now() + shape.pause;
  }
  ready_.notify_all();
}

void Pool::ForgetIdle(std::vector<std::unique_ptr<Prepared>>& ended) {
  const auto now = Clock::now();
  for (auto shape = shapes_.begin(); shape != shapes_.end();) {
    if (now - shape->last_used < kIdle || shape->awaited > 0) {
      ++shape;
      continue;
    }
    for (auto& prepared : shape->ready) ended.push_back(std::move(prepared));
    shape = shapes_.erase(shape);
  }
}

void Pool::Work() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    MakeRoom();
    if (Shape* const shape = NextToFill(); shape != nullptr) {
      MakeOne(lock, *shape);
    } else if (used_.empty()) {
      work_.wait_until(lock, NextLook());
    }
    std::vector<std::unique_ptr<Prepared>> ended = std::exchange(used_, {});
    ForgetIdle(ended);
    ready_.notify_all();
    lock.unlock();
    ended.clear();
    lock.lock();
  }
  // All end on the thread that made them: init dies with it anyway.
  std::list<Shape> shapes = std::exchange(shapes_, {});
  std::vector<std::unique_ptr<Prepared>> ended = std::exchange(used_, {});
  lock.unlock();
}

}  // namespace belljar::backend
