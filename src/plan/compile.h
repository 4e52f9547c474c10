// plan/compile.h: policy + host facts → plan. Decides everything; afterwards nobody does.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <belljar/caller.h>
#include <belljar/channel.h>
#include <belljar/error.h>
#include <belljar/policy.h>

#include "plan/builder.h"
#include "plan/compiled_plan.h"
#include "sys/host_facts.h"

namespace belljar::plan {

enum class Tracing : std::uint8_t { kOff, kOn };

/// Whose copy init is.
enum class InitOf : std::uint8_t {
  kCaller,    ///< This process's; cheapest for a small program that makes one sandbox.
  kLauncher,  ///< A launcher's, where the form has a pid namespace.
};

/// When the command is known: with the plan; later, for a sandbox that is prepared ahead; or whenever one comes, for a
/// live sandbox.
enum class CommandKnown : std::uint8_t { kNow, kLater, kMany };

struct Request {
  const Policy& policy;
  const sys::HostFacts& facts;
  const Caller& caller;
  const std::vector<std::string>& argv;  ///< Looked at for CommandKnown::kNow alone.
  Streams streams = Streams::kPipes;
  std::uint16_t rows = 0, columns = 0;  ///< Of the terminal.
  Tracing tracing = Tracing::kOff;
  CommandKnown command = CommandKnown::kNow;
  InitOf init_of = InitOf::kCaller;
  std::span<const Channel> channels = {};
  std::string run_id;  ///< Names the cgroup and the private directory: letters, digits, '-'.
  std::string bwrap;   ///< The bwrap that makes the walls; empty: Belljar's init makes them.
};

/// Which of a run's failures an Error of Compile is.
enum class Fault : std::uint8_t {
  kCaller,   ///< The arguments are wrong: a missing mount source, an empty argv.
  kRefused,  ///< The policy can't be met on this host.
};
struct CompileError {
  Fault fault = Fault::kRefused;
  Error error;
};

std::expected<CompiledPlan, CompileError> Compile(const Request& request);

/// Into the receipt of a live sandbox, for a command that has limits where the sandbox has none.
void AddCommandsLimits(const Limits& limits, Receipt& receipt);

/// The host's uid and gid of a privileged caller's guest.
uid_t PickGuestUid(std::string_view run_id);

/// limits.processes as a cgroup counts them, which sees ours too.
std::uint64_t TasksFor(const Limits& limits, std::uint64_t own_tasks);

/// A command apart from its sandbox.
struct SentCommand {
  /// A CommandBlock. Empty when the command needs more than such a sandbox has: an interpreter outside the system, or
  /// very long arguments.
  std::vector<std::uint64_t> block;
  std::vector<ChannelReceipt> channels;  ///< What its receipt says of them.
};

/// For a sandbox of Form::kNamespaces that was made with the same policy; of a live one (CommandKnown::kMany) the
/// working directory, the deadline and the environment may differ, and the program is looked for inside alone.
std::expected<SentCommand, CompileError> CompileCommand(const Request& request);

}  // namespace belljar::plan
