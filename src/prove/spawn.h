// prove/spawn.h: child processes of the prover that are no sandboxes: stages and controls.
//
// Safe from many threads (posix_spawn; every descriptor is close-on-exec but those handed over).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <belljar/error.h>

#include "base/unique_fd.h"

namespace belljar::prove {

/// One child with its three streams as pipes. The destructor kills and reaps it.
class Child {
 public:
  /// In a session of its own: Ctrl-C is for the prover, which then ends its children in order.
  static Expected<Child> Start(const std::vector<std::string>& argv);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  /// Waits for it to end; the status as from waitpid.
  int Wait();
  void Kill() const;

  base::UniqueFd input;
  base::UniqueFd output;
  base::UniqueFd error;

 private:
  Child() = default;
  pid_t pid_ = -1;
};

/// The output of a child that ended. Of a long stream the head and the tail are kept.
struct Finished {
  std::string out;
  std::string err;
  std::uint64_t out_bytes = 0;
  int status = 0;
  bool timed_out = false;
};

/// Runs a program to its end, at most `limit`; `cancel` is a descriptor that becomes readable to end it early, or -1.
Expected<Finished> RunToEnd(const std::vector<std::string>& argv,
                            std::chrono::milliseconds limit = std::chrono::seconds(20), int cancel = -1);

}  // namespace belljar::prove
