// cli/policy_flags.h: the policy's keys as command-line flags, for every verb that takes a policy.
//
//   PolicyFlags flags;
//   flags.AddTo(app);
//   app.parse(argc, argv);
//   Expected<Policy> policy = flags.Build();
//
// The flags are made from the table of keys (policy/key.h). Values are kept as text while parsing and turned into a
// policy by Build: first the profile, then the policy file, then the flags. PolicyFlags must outlive the app's parse
// and must not move in between, since the app writes into it.
#pragma once

#include <string>
#include <vector>

#include <belljar/policy.h>

namespace CLI {  // NOLINT(readability-identifier-naming): the library chose it
class App;
}

namespace belljar::cli {

class PolicyFlags {
 public:
  PolicyFlags() = default;
  PolicyFlags(const PolicyFlags&) = delete;
  PolicyFlags& operator=(const PolicyFlags&) = delete;

  void AddTo(CLI::App& app);

  /// Values are checked one by one; contradictions between them are Policy::Check's business.
  Expected<Policy> Build() const;

 private:
  Expected<Policy> Start() const;
  Expected<void> ApplyKeys(Policy& policy) const;
  Expected<void> ApplyNetwork(Policy& policy) const;
  Expected<void> ApplyMounts(Policy& policy) const;
  const std::vector<std::string>& ValuesOf(std::string_view key) const;

  std::vector<std::vector<std::string>> values_;  // one for each key of the table; empty: the flag was not given
  std::vector<std::string> read_only_;
  std::vector<std::string> read_write_;
  std::vector<std::string> unprotect_;
  std::string policy_file_;
  bool share_host_network_ = false;
};

/// "SRC[:DST]" as a mount: SRC may be relative or start with ~; DST is SRC's absolute form when it is left out. `flag`
/// is what errors call it.
Expected<Mount> ParseMount(std::string_view text, Access access, std::string_view flag);

}  // namespace belljar::cli
