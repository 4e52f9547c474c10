// learn/learn.h: the smallest policy under which an example passes, found by running it.
//
// First the example runs as its caller, traced, with all of the host's files in sight: it has to be trusted. Then it
// runs at level kernel under the grants that its uses suggest, and again with one grant left out each time: what
// changes nothing is not needed. These trials write into private copies.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <belljar/error.h>
#include <belljar/policy.h>
#include <belljar/result.h>
#include <belljar/run.h>

#include "learn/candidates.h"

namespace belljar::learn {

enum class Verification : std::uint8_t { kOn, kOff };

struct LearnRequest {
  const Policy& policy;  ///< What the learned one starts from: limits, environment.
  const std::vector<std::string>& argv;
  std::string input;  ///< Standard input, the same for each run.
  Verification verification = Verification::kOn;
  const CancelToken* cancel = nullptr;
  std::function<void(const std::string& line)> progress;
};

enum class Standing : std::uint8_t {
  kMinimal,      ///< It passes, and each grant was left out once and missed.
  kUnverified,   ///< Nobody tried.
  kFails,        ///< The example does not pass under it.
  kAuditFailed,  ///< The example failed already with all of the host in sight: nothing to learn from.
};
std::string_view Name(Standing standing);

struct Lesson {
  Standing standing = Standing::kUnverified;
  Policy policy;              ///< With the grants.
  std::vector<Grant> grants;  ///< Those that are in it.
  std::vector<Grant> dropped;
  std::vector<std::string> withheld;
  std::vector<std::string> addresses;
  std::vector<std::string> notes;  ///< What a reader of the policy should know.
  Result audit;
  std::optional<Result> verified;  ///< The last run under the policy, with what it was refused.
  unsigned trials = 0;
};

/// An Error means that the caller's arguments are wrong.
Expected<Lesson> Learn(const LearnRequest& request);

/// The policy as TOML, with a comment for each grant.
std::string LessonToml(const Lesson& lesson, const std::vector<std::string>& argv);

}  // namespace belljar::learn
