// backend/pool.h: sandboxes made ahead of demand, so that a run starts with the command itself.
//
// A sandbox is prepared for a shape: all of a policy that its root, limits and guards depend on. It is used once: no
// guest ever runs where another one ran. One thread of the pool makes and ends them; a run that finds none ready makes
// its own, as without a pool.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <belljar/policy.h>

#include "launch/sandbox.h"
#include "plan/compiled_plan.h"
#include "sys/host_facts.h"

namespace belljar::backend {

struct Prepared {
  plan::CompiledPlan plan;
  std::optional<launch::Sandbox> sandbox;  ///< Points to the plan, so a Prepared never moves.
  /// What each mount source was when it was mounted. A directory that was replaced since is another one.
  struct Source {
    dev_t device;
    ino_t inode;
    bool operator==(const Source&) const = default;
  };
  std::vector<Source> sources;
};

class Pool {
 public:
  /// Keeps at most `most` sandboxes ready, over all shapes together.
  explicit Pool(std::size_t most, launch::Launcher* launcher = nullptr) : most_(most), launcher_(launcher) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// A ready sandbox for the policy, or nothing. Either way the pool learns that there is demand.
  std::unique_ptr<Prepared> Take(const Policy& policy, const sys::HostFacts& facts, const std::string& home);
  /// Ends a used sandbox off the caller's path.
  void Retire(std::unique_ptr<Prepared> used);
  /// Blocks until `count` sandboxes (at most all that the pool keeps) are ready for the policy, or one could not be
  /// made. Where the pool is full others make room, least recently used first.
  Expected<void> Fill(const Policy& policy, const sys::HostFacts& facts, std::size_t count);

 private:
  using Clock = std::chrono::steady_clock;
  struct Shape {
    Policy policy;
    sys::HostFacts facts;
    std::size_t wanted = 1;
    std::size_t awaited = 0;  ///< How many calls of Fill wait for it; it is not forgotten then.
    Clock::time_point last_used;
    std::deque<std::unique_ptr<Prepared>> ready;
    std::optional<Error> failure;  ///< Why the last one could not be made.
    Clock::time_point retry_at;    ///< When the next is tried after a failure, which may pass (as too many open files).
    Clock::duration pause{};       ///< Between the last tries: longer each time.
  };

  Shape& Find(const Policy& policy, const sys::HostFacts& facts);
  void StartThread();
  void Work();
  Shape* NextToFill();
  Shape* MostUrgent();
  void MakeRoom();  ///< For one that Fill waits for.
  Clock::time_point NextLook() const;
  void MakeOne(std::unique_lock<std::mutex>& lock, Shape& shape);
  void ForgetIdle(std::vector<std::unique_ptr<Prepared>>& ended);
  std::size_t Ready() const;

  const std::size_t most_;
  launch::Launcher* const launcher_;
  std::mutex mutex_;
  std::condition_variable work_;   ///< For the thread.
  std::condition_variable ready_;  ///< For Fill.
  std::list<Shape> shapes_;        ///< A list: MakeOne holds on to one while the lock is released.
  std::vector<std::unique_ptr<Prepared>> used_;
  Shape* making_ = nullptr;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace belljar::backend
