// launch/look_thread.h: looks at a guest from a thread of their own.
//
// Most of what /proc tells of a process is read under locks that the process can hold, or is as long as it makes it. A
// guest can make a look last for seconds: then the look waits, and nobody else does.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "launch/verdict.h"
#include "sys/pipe.h"

namespace belljar::launch {

/// What is looked at. Once its thread has begun it is the thread's alone, until Stop.
class Looker {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  Looker() = default;
  Looker(const Looker&) = delete;
  Looker& operator=(const Looker&) = delete;
  virtual ~Looker() = default;
  /// kNone, or what to end the run for; it is not asked again then.
  virtual KillReason Look(std::uint64_t now) = 0;
  /// When Look is due; kNever: not at all.
  virtual std::uint64_t next() const = 0;
};

class LookThread {
 public:
  explicit LookThread(Looker& looker) : looker_(looker) {}
  LookThread(const LookThread&) = delete;
  LookThread& operator=(const LookThread&) = delete;
  ~LookThread() { Stop(); }

  /// False when there is no thread to be had.
  bool Begin();
  bool begun() const { return thread_.joinable(); }
  /// Waits for a look that is under way: not while the guest lives.
  void Stop();
  /// Readable when there is a reason; only after Begin.
  int news_fd() const { return news_.read.get(); }
  KillReason reason() const { return reason_; }
  /// When the look that is under way began; kNever: there is none.
  std::uint64_t busy_since() const { return busy_since_; }

 private:
  void Work();

  Looker& looker_;
  std::thread thread_;
  sys::Pipe stop_, news_;  // Each a sys::Signal.
  std::atomic<KillReason> reason_ = KillReason::kNone;
  std::atomic<std::uint64_t> busy_since_ = Looker::kNever;
};

}  // namespace belljar::launch
