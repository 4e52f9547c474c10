#include "plan/compile.h"

#include <sched.h>

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "plan/bwrap.h"
#include "plan/sections.h"
#include "sys/channel.h"
#include "sys/files.h"
#ifdef BELLJAR_TEST_SEAMS
#include "plan/without.h"
#endif

namespace belljar::plan {
namespace {

// Host ids that nothing else uses: above the ranges that distributions and container tools hand out.
constexpr uid_t kFirstGuestUid = 1'900'000'000;
constexpr std::uint32_t kGuestUids = 1U << 26;

static_assert(kNoDeadline == kUnlimited);

constexpr std::size_t kMaxArgumentBytes = 1U << 20;

std::string_view ValueOf(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string_view variable : environment) {
    if (variable.starts_with(name) && variable.substr(name.size()).starts_with('=')) {
      return variable.substr(name.size() + 1);
    }
  }
  return {};
}

std::expected<void, CompileError> CheckArgv(const std::vector<std::string>& argv) {
  const auto wrong = [](std::string message, std::string hint) {
    return std::unexpected(CompileError{
        Fault::kCaller, Error{.step = "read the command", .message = std::move(message), .hint = std::move(hint)}});
  };
  if (argv.empty() || argv[0].empty())
    return wrong("there is no command to run", "put it behind --, as in: -- /bin/true");
  std::size_t bytes = 0;
  for (const std::string& argument : argv) {
    if (argument.find('\0') != std::string::npos)
      return wrong("an argument holds a NUL byte", "arguments are C strings");
    bytes += argument.size() + 1 + sizeof(char*);
  }
  if (bytes > kMaxArgumentBytes) return wrong("the arguments are larger than 1 MiB", "pass the data on standard input");
  return {};
}

std::expected<std::vector<ChannelReceipt>, CompileError> CheckChannels(const Request& request) {
  const std::span<const Channel> channels = request.channels;
  const auto wrong = [](std::string step, std::string message, std::string hint) {
    return std::unexpected(CompileError{
        Fault::kCaller, Error{.step = std::move(step), .message = std::move(message), .hint = std::move(hint)}});
  };
  if (channels.size() > kMaxChannels) {
    return wrong("hand over channels", fmt::format("{} are more than {}", channels.size(), kMaxChannels),
                 "pass further descriptors through a socket");
  }
  std::vector<ChannelReceipt> receipts;
  for (const Channel& channel : channels) {
    const std::string step = fmt::format("hand over descriptor {} as {}", channel.fd, channel.number);
    if (channel.number < kFirstChannelNumber || channel.number > kLastChannelNumber) {
      return wrong(step, "no channel can have that number",
                   fmt::format("choose one from {} to {}", kFirstChannelNumber, kLastChannelNumber));
    }
    if (std::ranges::find(receipts, channel.number, &ChannelReceipt::number) != receipts.end()) {
      return wrong(step, "another channel has that number", "choose another");
    }
    auto kind = sys::KindOfChannel(channel.fd);
    if (!kind) return std::unexpected(CompileError{Fault::kCaller, kind.error()});
    // SECURITY: by /proc/self/fd the guest could open it again, for more than it was opened for.
    const bool rules = request.facts.landlock_abi > 0 || request.policy.level < Level::kKernel;
    if (*kind == "file" && !rules && !sys::IsReadWrite(channel.fd)) {
      return wrong(step, "without Landlock the guest could open that file again for writing", "hand over a pipe");
    }
    receipts.push_back({.number = channel.number, .name = channel.name, .kind = std::move(*kind)});
  }
  return receipts;
}

void PlanCgroup(Draft& draft) {
  const sys::CgroupLayout& layout = draft.request.facts.cgroups;
  const Limits& limits = draft.request.policy.limits;
  CompiledPlan& out = draft.out;
  if (draft.request.command == CommandKnown::kMany) out.own_tasks += kReadyTasks;
  // Each command of a live sandbox has its own, which is looked at by who supervises it.
  const bool cpu_time = limits.cpu_time_ns != kUnlimited && draft.request.command != CommandKnown::kMany;
  out.cgroup_limits = {.memory = limits.memory,
                       .processes = TasksFor(limits, out.own_tasks),
                       .cpus_milli = limits.cpus_milli,
                       .cpu_time = cpu_time};
  if (layout.version != sys::CgroupVersion::kNone) {
    out.cgroup_name = "belljar-" + draft.request.run_id;
    out.cgroup_paths = sys::Cgroup::Paths(layout, out.cgroup_name, out.cgroup_limits);
  }
  const bool clones = layout.version == sys::CgroupVersion::kV2 && draft.request.facts.clone_into_cgroup;
  out.cgroup_entry = clones ? sys::CgroupEntry::kClone : sys::CgroupEntry::kJoin;
  // Without privileges the network belongs to init's own user namespace, which is not there yet.
  out.by_launcher = draft.request.init_of == InitOf::kLauncher && draft.HasNamespaces();
  const bool ahead = draft.own_network && draft.Privileged();
  out.network_ahead = ahead && out.by_launcher;
  out.janitor_makes_network = ahead && !out.by_launcher && !out.cgroup_paths.empty();
  out.own_network = draft.own_network;
  out.watches_uncounted = limits.memory != kUnlimited;
  out.counts_cpu_time = cpu_time;
  out.watched = {.memory = layout.memory.empty() && limits.memory != kUnlimited,
                 .processes = layout.pids.empty() && limits.processes != kUnlimited,
                 .cpu_time = cpu_time && layout.cpuacct.empty(),
                 .disk = !draft.HasNamespaces() && limits.disk != kUnlimited};
}

}  // namespace

// From the run's name (FNV-1a), which is random: two runs at once are different users.
uid_t PickGuestUid(std::string_view run_id) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : run_id) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return kFirstGuestUid + static_cast<uid_t>(hash % kGuestUids);
}

std::uint64_t TasksFor(const Limits& limits, std::uint64_t own_tasks) {
  return limits.processes == kUnlimited ? kUnlimited : limits.processes + own_tasks;
}

std::expected<CompiledPlan, CompileError> Compile(const Request& request) {
  if (!request.bwrap.empty()) return CompileForBwrap(request);
  if (request.command == CommandKnown::kNow) {
    if (auto good = CheckArgv(request.argv); !good) return std::unexpected(good.error());
  }
  auto channels = CheckChannels(request);
  if (!channels) return std::unexpected(channels.error());
  const Policy& policy = request.policy;
  auto choice = ChooseForm(policy, request.facts);
  if (!choice) return std::unexpected(CompileError{Fault::kRefused, choice.error()});

  Draft draft{.request = request, .choice = *choice, .program = {}, .builder = {}, .out = {}, .workdir = {}};
  draft.out.level = choice->level;
  draft.out.form = choice->form;
  draft.own_network = draft.HasNamespaces() && policy.network.mode == NetworkMode::kNone;
  draft.enters_user_namespace =
      draft.HasNamespaces() && request.facts.user_namespaces && (draft.OwnRoot() || !request.facts.privileged);
  draft.out.guest_uid = request.facts.uid;
  draft.out.guest_gid = request.facts.gid;
  if (draft.OwnRoot() && draft.Privileged()) draft.out.guest_uid = draft.out.guest_gid = PickGuestUid(request.run_id);
  if (request.command == CommandKnown::kNow) draft.program = FindProgram(policy, request.argv[0], request.caller);
  if (draft.program.refusal && choice->level >= Level::kKernel) {
    return std::unexpected(CompileError{Fault::kCaller, *draft.program.refusal});
  }
  if (draft.OwnRoot()) draft.workdir = kDefaultWorkdir;
  if (!policy.files.workdir.empty()) draft.workdir = policy.files.workdir;
  // The whole host is visible at level process, so its PATH is the right one.
  if (choice->level < Level::kKernel) {
    if (auto path = request.caller.Variable("PATH")) draft.program.path = std::move(*path);
  }
  PlanCgroup(draft);

  draft.builder.head.wall_ns = policy.limits.wall_ns;
  if (request.command == CommandKnown::kMany) {
    if (!draft.OwnRoot()) {
      return std::unexpected(CompileError{
          Fault::kRefused, Error{.step = "open a live sandbox",
                                 .message = fmt::format("that takes namespaces; this would be {}", Name(choice->form)),
                                 .hint = "run each command in a sandbox of its own"}});
    }
    draft.builder.head.live = 1;
    draft.builder.head.scoped = request.facts.landlock_abi >= kLandlockSignalScope ? 1 : 0;
  }
  AddIdentity(draft);
  if (auto added = AddFiles(draft); !added) return std::unexpected(added.error());
  AddPrivilegeDrop(draft);
  AddCommand(draft);
  if (request.command == CommandKnown::kNow) {
    draft.builder.SetCommand(LayOutCommand({.argv = request.argv,
                                            .envp = BuildEnvironment(draft),
                                            .exec_paths = draft.program.exec_paths,
                                            .wall_ns = policy.limits.wall_ns,
                                            .channels = request.channels}));
  }
  draft.out.receipt = WriteReceipt(draft);
  draft.out.receipt.channels = std::move(*channels);
  draft.out.own_ipc = (draft.builder.head.clone_flags & CLONE_NEWIPC) != 0;
  draft.out.block = draft.builder.Finish();
#ifdef BELLJAR_TEST_SEAMS
  ApplyLeftOut(draft.out);
#endif
  return std::move(draft.out);
}

std::expected<SentCommand, CompileError> CompileCommand(const Request& request) {
  if (auto good = CheckArgv(request.argv); !good) return std::unexpected(good.error());
  auto channels = CheckChannels(request);
  if (!channels) return std::unexpected(channels.error());
  SentCommand sent{.block = {}, .channels = std::move(*channels)};
  Draft draft{.request = request,
              .choice = {.level = Level::kKernel, .form = Form::kNamespaces},
              .program = {},
              .builder = {},
              .out = {},
              .workdir = {}};
  std::vector<std::string> environment;
  if (request.command == CommandKnown::kMany) {
    draft.program.path = kSystemPath;
    environment = BuildEnvironment(draft);
    draft.program.exec_paths = LookInside(request.argv[0], ValueOf(environment, "PATH"));
  } else {
    draft.program = FindProgram(request.policy, request.argv[0], request.caller);
    const bool brings = !draft.program.brought.empty() || !draft.program.links.empty();
    if (brings || draft.program.refusal) return sent;
    environment = BuildEnvironment(draft);
  }
  const bool many = request.command == CommandKnown::kMany;
  sent.block = LayOutCommand({.argv = request.argv,
                              .envp = environment,
                              .exec_paths = draft.program.exec_paths,
                              .wall_ns = request.policy.limits.wall_ns,
                              .channels = request.channels,
                              .workdir = many ? std::string_view(request.policy.files.workdir) : std::string_view(),
                              .streams = request.streams,
                              .rows = request.rows,
                              .columns = request.columns,
                              .own = many ? &request.policy : nullptr});
  if (sent.block.size() * sizeof(std::uint64_t) > kMostSentCommand) sent.block.clear();
  return sent;
}

}  // namespace belljar::plan
