// prove/prover.h: runs the containment corpus against this host, each case outside and inside, and judges.
//
//   Prover prover(catalog, {.policy = policy});
//   Expected<Proof> proof = prover.Run(cases, [](const Progress& p) { … });
//
// A case counts as escaped when it worked inside, or touched anything of its stage, although the receipt of that run
// claims a guard that should have held it. Where the receipt claims none, the level does not promise it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <belljar/engine.h>
#include <belljar/policy.h>
#include <belljar/result.h>

#include "prove/catalog.h"
#include "prove/control.h"

namespace belljar::prove {

enum class Finding : std::uint8_t {
  kContained,    ///< Works outside, refused inside, nothing touched.
  kEscaped,      ///< Worked inside.
  kNotPromised,  ///< Worked inside, and no guard of this run claims to hold it.
  kVacuous,      ///< Does not work outside either, so holding it shows nothing.
  kError,        ///< Could not be tried.
};
std::string_view Name(Finding finding);

struct CaseProof {
  Case tried;
  Finding finding = Finding::kError;
  std::string guard;    ///< What held it, where that can be told.
  std::string outside;  ///< What the control got, or why it got nothing.
  std::string inside;   ///< What refused it, or what it got.
  Receipt receipt;      ///< Of its run.
  double duration_ms = 0;
};

struct Proof {
  std::vector<CaseProof> cases;
  Receipt receipt;  ///< Of the last run; all have the same policy but for sizes.
  double duration_ms = 0;
  bool cancelled = false;

  int Count(Finding finding) const;
};

/// What runs in the sandbox of a case.
enum class Company : std::uint8_t {
  kNone,
  kBystander,  ///< A live sandbox, and in it another command, which must not be hurt.
};

struct ProveOptions {
  Policy policy;
  Company company = Company::kNone;
  std::string backend = "native";
  const CancelToken* cancel = nullptr;
};

struct Progress {
  int done = 0;
  int total = 0;
  int escaped = 0;
};

class Prover {
 public:
  Prover(Catalog catalog, std::string secret, ProveOptions options);

  /// Cases in parallel but for those that need quiet. Controls are run once per Prover and remembered.
  Expected<Proof> Run(const std::vector<Case>& cases, const std::function<void(const Progress&)>& progress);

 private:
  Expected<Result> RunInside(Engine& engine, Policy policy, const std::vector<std::string>& argv, std::string& damage);
  CaseProof Try(Engine& engine, const Case& c, const ControlResult& control);
  ControlResult Control(const Case& c);
  bool Stopped() const;
  void TryAll(Engine& engine, const std::vector<const Case*>& cases, unsigned workers, Proof& proof,
              const std::function<void(const CaseProof&)>& done);

  Catalog catalog_;
  std::string secret_;
  ProveOptions options_;
  Sizes sizes_;
  std::mutex controls_mutex_;
  std::map<std::string, ControlResult> controls_;  ///< By id; guarded by controls_mutex_.
};

}  // namespace belljar::prove
