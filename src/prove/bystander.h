// prove/bystander.h: another command in the live sandbox of a case, which has to come to no harm by it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <belljar/error.h>
#include <belljar/live_sandbox.h>
#include <belljar/result.h>

#include "base/unique_fd.h"

namespace belljar::prove {

class Bystander {
 public:
  /// Returns when it runs. The sandbox outlives it.
  static Expected<std::unique_ptr<Bystander>> Start(LiveSandbox& sandbox);
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;
  ~Bystander();

  /// Ends it; what happened to it that `attack`, the result of the case, does not explain. Empty: nothing.
  std::string Damage(const Result& attack);

 private:
  Bystander() = default;
  void Run(LiveSandbox& sandbox);

  base::UniqueFd input_;  ///< It runs until this is closed.
  base::UniqueFd its_in_, its_out_;
  std::optional<Expected<Result>> result_;
  std::thread thread_;
};

}  // namespace belljar::prove
