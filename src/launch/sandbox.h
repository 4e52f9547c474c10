// launch/sandbox.h: one live sandbox and all that it owns on the host. The destructor ends it and leaves nothing.
//
// Without a launcher it is made and used by one thread: init asks for a signal when the thread that made it ends.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <span>
#include <string>
#include <vector>

#include <belljar/error.h>

#include "base/unique_fd.h"
#include "launch/connection.h"
#include "launch/janitor.h"
#include "launch/launcher.h"
#include "launch/orphans.h"
#include "plan/compiled_plan.h"
#include "sys/cgroup.h"
#include "sys/host_facts.h"

namespace belljar::launch {

/// Where sandboxes are made.
struct Host {
  const sys::CgroupLayout& cgroups;
  Launcher* launcher = nullptr;  ///< For plans that are by_launcher.
};

class Sandbox {
 public:
  /// Prepares the host side and has init made, which executes the plan. What init makes of it comes as reports.
  static Expected<Sandbox> Start(const plan::CompiledPlan& plan, const Host& host, const Attached& given);
  /// The same for a plan without a command. Waits until init has done all steps before it.
  static Expected<Sandbox> Prepare(const plan::CompiledPlan& plan, const Host& host);
  /// Hands the command to a prepared sandbox, which can be done once: no guest runs where another one ran.
  Expected<void> Begin(std::span<const std::uint64_t> command, const Attached& given);
  /// One more steward in a live sandbox, who waits for a command. By any thread.
  Expected<Connection> AddSteward() const;
  /// Hands it that command, which can have no terminal.
  Expected<void> Begin(Connection& steward, std::span<const std::uint64_t> command, const Attached& given) const;
  /// One more, with a command that has a terminal.
  Expected<Connection> BeginAtTerminal(std::span<const std::uint64_t> command, const Attached& given) const;
  Sandbox(Sandbox&&) = default;
  Sandbox& operator=(Sandbox&&) = delete;
  ~Sandbox();

  Connection connection;       ///< With init, and the command where that is the only one.
  base::UniqueFd pidfd;        ///< Init.
  base::UniqueFd listener;     ///< Of refused calls; only in a prepared sandbox, others send it later.
  base::UniqueFd socket_diag;  ///< As listener: a view of the sandbox's sockets.
  sys::Cgroup cgroup;
  bool only_init_is_left = false;  ///< Init has said so: whoever ends it leaves no orphans.

  pid_t init() const { return init_.pid; }
  /// What another program that makes the walls has to say, of why it did not; empty where init makes them.
  std::string Words() const;
  /// That program has started init, which is this process, and says so itself.
  void FoundInit(pid_t pid);
  bool by_launcher() const { return handle_.socket.valid(); }
  /// Ends all processes inside. Init is still to be waited for.
  void Kill();
  /// It was killed, and is not waited for: a process of it sleeps in the kernel, where somebody outside keeps it. It
  /// runs no more code, and what is left goes when it does. An init that this process made stays a zombie of it.
  void Leave();
  /// Reaps init, blocking until all inside is gone. Idempotent.
  using Ending = Launcher::Ending;
  const Ending& Wait();

 private:
  explicit Sandbox(const plan::CompiledPlan& plan) : plan_(&plan) {}
  Expected<void> PrepareHost(const Host& host, std::vector<base::UniqueFd>& id_maps);
  Expected<void> PrepareCleanUp(const Host& host);
  Expected<void> PrepareWalls();
  Expected<base::UniqueFd> OpenConnection();
  static Expected<base::UniqueFd> OpenStewards(Connection& connection);
  Expected<void> Hire(plan::Hire how, const base::UniqueFd& control) const;
  Owner Guest() const { return {plan_->guest_uid, plan_->guest_gid}; }
  Expected<void> MakeInit(base::UniqueFd control_of_init, const std::vector<base::UniqueFd>& id_maps);
  Expected<void> AwaitPrepared();

  struct OwnedPid {
    pid_t pid = -1;
    OwnedPid() = default;
    OwnedPid(OwnedPid&& other) noexcept : pid(std::exchange(other.pid, -1)) {}
  };
  const plan::CompiledPlan* plan_;
  Orphans orphans_;  ///< Before the janitor, so that its end comes after the janitor's: that is a child too.
  Janitor janitor_;
  Launcher::Handle handle_;  ///< Of the launcher, instead of the janitor.
  std::string private_directory_;
  OwnedPid init_;
  OwnedPid maker_;                     ///< What was cloned, where that is not init but makes its walls.
  std::vector<base::UniqueFd> walls_;  ///< In the slots of Op::kBecome.
  bool waited_ = false;
  Ending ending_;
};

}  // namespace belljar::launch
