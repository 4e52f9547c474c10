#include "backend/pool.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "plan/compile.h"
#include "sys/process.h"

namespace belljar::backend {
namespace {

constexpr std::size_t kMostShapes = 16;
constexpr std::size_t kMostUsed =
    32;  // More wait for their end than this: whoever retires the next one ends it itself.
constexpr std::chrono::seconds kIdle{10};

// The environment is the command's and comes with it.
bool SameShape(const Policy& a, const Policy& b) {
  return a.level == b.level && a.min_level == b.min_level && a.limits == b.limits && a.files == b.files &&
         a.network == b.network && a.host_network_granted() == b.host_network_granted();
}

std::vector<Prepared::Source> LookAtSources(const Policy& policy) {
  std::vector<Prepared::Source> sources;
  sources.reserve(policy.files.mounts.size());
  for (const Mount& mount : policy.files.mounts) {
    struct stat status{};
    if (::stat(mount.source.c_str(), &status) != 0) status = {};
    sources.push_back({status.st_dev, status.st_ino});
  }
  return sources;
}

Expected<std::unique_ptr<Prepared>> Make(const Policy& policy, const sys::HostFacts& facts) {
  auto prepared = std::make_unique<Prepared>();
  prepared->sources = LookAtSources(policy);
  auto plan = plan::Compile({.policy = policy,
                             .facts = facts,
                             .argv = {},
                             .command = plan::CommandKnown::kLater,
                             .run_id = sys::MakeRunId()});
  if (!plan) return std::unexpected(plan.error().error);
  if (plan->form != plan::Form::kNamespaces) {
    return std::unexpected(Error{.step = "prepare a sandbox",
                                 .message = "only sandboxes with namespaces of their own can be made ahead",
                                 .hint = "run without a pool"});
  }
  prepared->plan = std::move(*plan);
  auto sandbox = launch::Sandbox::Prepare(prepared->plan, facts.cgroups);
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
    if (&*oldest != making_) {
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

std::unique_ptr<Prepared> Pool::Take(const Policy& policy, const sys::HostFacts& facts) {
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
  if (taken && LookAtSources(policy) != taken->sources) {
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
  shape.failure.reset();
  shape.wanted = std::clamp<std::size_t>(count, shape.wanted, most_);
  const std::size_t enough = std::min(count, most_);
  StartThread();
  work_.notify_one();
  std::optional<Error> failure;
  ready_.wait(lock, [&] {
    // Looked up again: an idle shape may have been forgotten while the lock was released.
    const auto found = std::ranges::find_if(shapes_, [&](const Shape& s) { return SameShape(s.policy, policy); });
    if (found == shapes_.end()) return true;
    failure = found->failure;
    return failure.has_value() || found->ready.size() >= enough;
  });
  if (failure) return std::unexpected(*failure);
  return {};
}

void Pool::StartThread() {
  if (!thread_.joinable()) thread_ = std::thread([this] { Work(); });
}

Pool::Shape* Pool::NextToFill() {
  if (Ready() >= most_) return nullptr;
  Shape* next = nullptr;
  for (Shape& shape : shapes_) {
    if (shape.failure || shape.ready.size() >= shape.wanted) continue;
    if (next == nullptr || shape.last_used > next->last_used) next = &shape;
  }
  return next;
}

void Pool::MakeOne(std::unique_lock<std::mutex>& lock, Shape& shape) {
  making_ = &shape;
  const Policy policy = shape.policy;
  const sys::HostFacts facts = shape.facts;
  lock.unlock();
  auto made = Make(policy, facts);
  lock.lock();
  making_ = nullptr;
  if (made) {
    shape.ready.push_back(std::move(*made));
  } else {
    shape.failure = made.error();
  }
  ready_.notify_all();
}

void Pool::ForgetIdle(std::vector<std::unique_ptr<Prepared>>& ended) {
  const auto now = Clock::now();
  for (auto shape = shapes_.begin(); shape != shapes_.end();) {
    if (now - shape->last_used < kIdle) {
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
    if (Shape* const shape = NextToFill(); shape != nullptr) {
      MakeOne(lock, *shape);
    } else if (used_.empty()) {
      work_.wait_for(lock, kIdle);
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
