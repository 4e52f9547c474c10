// plan/sections.h: the parts a plan is put together from, in the order in which the child executes them.
#pragma once

#include <string>
#include <vector>

#include "plan/builder.h"
#include "plan/compile.h"
#include "plan/form.h"
#include "plan/program.h"

namespace belljar::plan {

/// The guest's own names. Fixed, so that files made by one run look the same to the next.
inline constexpr unsigned kGuestId = 1000;
inline constexpr char kGuestName[] = "guest";
inline constexpr char kDefaultWorkdir[] = "/workspace";
inline constexpr char kHome[] = "/tmp/home";

/// One draft of a plan: what the sections share while they are written.
struct Draft {
  const Request& request;
  Choice choice;
  Program program;
  Builder builder;
  CompiledPlan out;
  std::string workdir;                        ///< Inside.
  std::vector<std::string> protected_paths;   ///< Inside; read-only in a writable mount.
  std::vector<std::string> unsearched_paths;  ///< Of those: nobody looked for hard links to what they hold.
  bool own_network = false;
  bool enters_user_namespace = false;  ///< At the start (unprivileged) or at the end (privileged).

  bool OwnRoot() const { return choice.form == Form::kNamespaces; }
  bool HasNamespaces() const { return choice.form == Form::kNamespaces || choice.form == Form::kProcessNamespaces; }
  bool Privileged() const { return request.facts.privileged; }
  /// The guest's uid where its private filesystems are made: the privileged enter a user namespace later.
  unsigned Owner() const { return Privileged() ? out.guest_uid : kGuestId; }
  /// The uid that the guest sees as its own.
  unsigned InsideId() const { return OwnRoot() && enters_user_namespace ? kGuestId : out.guest_uid; }
};

// plan/root.cc
std::expected<void, CompileError> AddFiles(Draft& draft);
// plan/guards.cc
void AddIdentity(Draft& draft);  ///< First: who init is.
void AddLimits(Draft& draft);    ///< rlimits, affinity
void AddPrivilegeDrop(Draft& draft);
void AddCommand(Draft& draft);  ///< The command's own part.
// plan/landlock.cc
void AddLandlock(Draft& draft);
// plan/environment.cc
std::vector<std::string> BuildEnvironment(const Draft& draft);
// plan/receipt.cc
Receipt WriteReceipt(const Draft& draft);

}  // namespace belljar::plan
