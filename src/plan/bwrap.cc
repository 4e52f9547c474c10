#include "plan/bwrap.h"

#include <linux/mount.h>
#include <sched.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "plan/opened_plan.h"
#include "plan/sections.h"
#include "sys/files.h"

namespace belljar::plan {
namespace {

CompileError Lacking(std::string what, std::string message, std::string hint) {
  return {Fault::kRefused,
          Error{.step = "use backend bwrap for " + what, .message = std::move(message), .hint = std::move(hint)}};
}

std::expected<void, CompileError> CheckPolicy(const Request& request) {
  constexpr char kNative[] = "use --backend native";
  const Policy& policy = request.policy;
  if (policy.level != Level::kKernel) {
    return std::unexpected(
        Lacking(fmt::format("level {}", Name(policy.level)), "its walls are those of level kernel", kNative));
  }
  if (request.streams == Streams::kTerminal) {
    return std::unexpected(Lacking("a terminal", "there are no terminals behind its walls", kNative));
  }
  if (!request.facts.privileged) return {};
  for (const Mount& mount : policy.files.mounts) {
    if (mount.access == Access::kReadOnly) continue;
    return std::unexpected(Lacking("a writable " + mount.target,
                                   "as root it can't map the owner of a mount to the guest",
                                   "use --backend native, or start it as the owner"));
  }
  return {};
}

std::string Octal(std::uint64_t mode) { return fmt::format("{:04o}", mode); }

// "64k" as bytes; bwrap knows no units.
std::string InBytes(std::string_view size) {
  const std::size_t digits = size.find_first_not_of("0123456789");
  if (digits == std::string_view::npos) return std::string(size);
  const std::uint64_t unit = size[digits] == 'k' ? 1024 : 1024 * 1024;
  return std::to_string(std::stoull(std::string(size.substr(0, digits))) * unit);
}

/// Turns steps into bwrap's words, in their order, which is that of bwrap's own doing.
class Wording {
 public:
  Wording(OpenedPlan& opened, Walls& walls, int first_slot) : opened_(opened), walls_(walls), first_slot_(first_slot) {}

  void Namespaces(std::uint32_t flags);
  /// True when it is bwrap's now, and no step of init any more.
  bool Take(const Step& step);
  /// What init has to see for itself before anything of the guest's runs.
  std::expected<std::vector<Step>, CompileError> Checks();

 private:
  void Say(std::initializer_list<std::string> words) {
    walls_.arguments.insert(walls_.arguments.end(), words.begin(), words.end());
  }
  void Bind(const Step& step);
  void Tmpfs(const char* target, const char* options);
  void Cover(const Step& step);
  void File(const Step& step);

  OpenedPlan& opened_;
  Walls& walls_;
  int first_slot_;
  struct Mounted {
    std::string source;
    std::string target;
    std::uint32_t covers;
  };
  std::vector<Mounted> guarded_;  ///< On whose way somebody may put a link.
  std::vector<Step> covered_;     ///< What the host can uncover.
};

void Wording::Namespaces(std::uint32_t flags) {
  const std::string id = std::to_string(kGuestId);
  Say({"--unshare-user", "--disable-userns", "--uid", id, "--gid", id});
  constexpr std::pair<std::uint32_t, const char*> kFlags[] = {{CLONE_NEWPID, "--unshare-pid"},
                                                              {CLONE_NEWIPC, "--unshare-ipc"},
                                                              {CLONE_NEWUTS, "--unshare-uts"},
                                                              {CLONE_NEWNET, "--unshare-net"}};
  for (const auto& [flag, word] : kFlags) {
    if ((flags & flag) != 0) Say({word});
  }
  Say({"--unshare-cgroup", "--die-with-parent", "--as-pid-1", "--new-session", "--clearenv", "--chdir", "/"});
}

void Wording::Bind(const Step& step) {
  const std::string source = opened_.MoreOf(step);
  const std::string target = opened_.TextOf(step);
  const bool devices = (step.value & MOUNT_ATTR_NODEV) == 0;
  const bool read_only = (step.value & MOUNT_ATTR_RDONLY) != 0;
  Say({devices ? "--dev-bind" : read_only ? "--ro-bind" : "--bind", source, target});
  if (static_cast<Reach>(step.more_value) == Reach::kGuarded) guarded_.push_back({source, target, step.covers});
}

void Wording::Tmpfs(const char* target, const char* options) {
  while (*options != '\0') {
    const std::string_view key(options);
    const std::string_view value(options + key.size() + 1);
    if (key == "mode") Say({"--perms", std::string(value)});
    if (key == "size" && value != "0") Say({"--size", InBytes(value)});
    options = value.data() + value.size() + 1;
  }
  Say({"--tmpfs", target});
}

// What is not there now needs none; what comes meanwhile init sees (Op::kWatchCovers).
void Wording::Cover(const Step& step) {
  if (step.covers != 0) {
    covered_.push_back(step);
    covered_.back().op = Op::kCovered;
  }
  const std::string path = opened_.TextOf(step);
  const auto cover = static_cast<plan::Cover>(step.value);
  bool directory = cover == plan::Cover::kDirectory;
  if (path.starts_with("/proc/")) {  // The kernel's own, of which there is the same on the host.
    if (sys::LinkStatus(path).kind == sys::FileKind::kAbsent) return;
  } else {
    const auto shown = std::ranges::find_if(guarded_.rbegin(), guarded_.rend(),
                                            [&](const auto& mounted) { return sys::IsWithin(path, mounted.target); });
    const std::string on_host = shown == guarded_.rend() ? path : shown->source + path.substr(shown->target.size());
    const sys::FileKind kind = sys::Status(on_host).kind;
    if (kind == sys::FileKind::kAbsent && cover != plan::Cover::kPresent) return;
    directory = kind == sys::FileKind::kDirectory;
  }
  if (directory) {
    Say({"--perms", "0000", "--size", "4096", "--tmpfs", path, "--remount-ro", path});
  } else {
    Say({"--dev-bind", "/dev/null", path});
  }
}

void Wording::File(const Step& step) {
  const int slot = first_slot_ + kBecomeFiles + static_cast<int>(walls_.files.size());
  walls_.files.emplace_back(opened_.MoreOf(step), step.more_value);
  Say({"--perms", Octal(step.value), "--file", std::to_string(kPassedFrom + slot), opened_.TextOf(step)});
}

bool Wording::Take(const Step& step) {
  const char* text = opened_.TextOf(step);
  switch (step.op) {
    case Op::kHostname: Say({"--hostname", text}); return true;
    case Op::kDirectory: Say({"--perms", Octal(step.value), "--dir", text}); return true;
    case Op::kSymlink: Say({"--symlink", opened_.MoreOf(step), text}); return true;
    case Op::kFile: File(step); return true;
    case Op::kBind: Bind(step); return true;
    case Op::kTmpfs: Tmpfs(text, opened_.MoreOf(step)); return true;
    case Op::kProc: Say({"--proc", text}); return true;
    case Op::kMask: Cover(step); return true;
    case Op::kReadOnly: Say({"--remount-ro", text}); return true;
    case Op::kSealRoot: Say({"--remount-ro", "/"}); return true;
    // It does these by itself, or there are none of them (terminals).
    case Op::kMapIds:
    case Op::kCgroupNamespace:
    case Op::kPrivateMounts:
    case Op::kNewRoot:
    case Op::kMountPoint:
    case Op::kDevpts:
    case Op::kTerminals:
    case Op::kMaskSource:
    case Op::kPivot:
    case Op::kLoopback: return true;
    default: return false;
  }
}

// SECURITY: bwrap follows links in what it is told to mount, and somebody may put one there right now.
std::expected<std::vector<Step>, CompileError> Wording::Checks() {
  std::vector<Step> checks;
  for (const auto& [source, target, covers] : guarded_) {
    const auto found = sys::StatusWithoutLinks(source);
    if (!found) {
      return std::unexpected(CompileError{Fault::kCaller, Error{.step = "mount " + source,
                                                                .message = "it is not there any more, or behind a link",
                                                                .hint = "see who changes it, and try again"}});
    }
    checks.push_back({.op = Op::kSameFile,
                      .slot = -1,
                      .text = opened_.Intern(target),
                      .covers = covers,
                      .value = found->device,
                      .more_value = found->inode});
  }
  checks.insert(checks.end(), covered_.begin(), covered_.end());
  return checks;
}

GuardReceipt Lacks(const std::string& guard, const char* why) { return {guard, GuardState::kAbsent, {}, why}; }

void TellWalls(const Request& request, Receipt& receipt) {
  receipt.backend = "bwrap";
  const std::pair<const char*, const char*> words_for[] = {
      {"user namespace", "bwrap --unshare-user --disable-userns"},
      {"mount namespace", "bwrap"},
      {"pid namespace", "bwrap --unshare-pid"},
      {"ipc namespace", "bwrap --unshare-ipc"},
      {"uts namespace", "bwrap --unshare-uts"},
      {"cgroup namespace", "bwrap --unshare-cgroup"},
      {"root filesystem", "bwrap: own root, read-only, pivot_root"},
  };
  for (GuardReceipt& guard : receipt.guards) {
    for (const auto& [name, words] : words_for) {
      if (guard.guard == name) guard.by = words;
    }
    if (guard.guard == "network" && guard.state == GuardState::kEnforced)
      guard.by = "bwrap --unshare-net, loopback only";
    if (guard.guard == "files limit" && guard.state != GuardState::kOff)
      guard = Lacks(guard.guard, "bwrap can't bound it");
    if (guard.guard == "inotify limits") guard = Lacks(guard.guard, "bwrap can't set them");
    if (guard.guard == "identity" && request.facts.privileged) {
      const std::string by = fmt::format("host uid {}, no groups", PickGuestUid(request.run_id));
      guard = {guard.guard, GuardState::kEnforced, by, {}};
    }
  }
}

Request WithFacts(const Request& request, const sys::HostFacts& facts) {
  return {.policy = request.policy,
          .facts = facts,
          .caller = request.caller,
          .argv = request.argv,
          .streams = request.streams,
          .rows = request.rows,
          .columns = request.columns,
          .tracing = request.tracing,
          .command = request.command,
          .init_of = request.init_of,
          .channels = request.channels,
          .run_id = request.run_id,
          .bwrap = {}};
}

// What is done before bwrap begins: by the process that becomes it.
bool IsOutside(Op op) {
  return op == Op::kCloseForeign || op == Op::kDieWithParent || op == Op::kJoinCgroup || op == Op::kOomScore;
}

// Splits the steps in those before bwrap, its own, and init's.
std::expected<void, CompileError> Split(const Request& request, CompiledPlan& compiled) {
  OpenedPlan opened(compiled);
  Walls walls{.program = request.bwrap, .arguments = {}, .files = {}};
  const int first_slot = kFirstExtraSlot + static_cast<int>(compiled.cgroup_paths.size());
  Wording wording(opened, walls, first_slot);
  std::vector<Step> outside;
  std::vector<Step> inside{{.op = Op::kInside, .slot = -1}};
  std::vector<Step> command;
  wording.Namespaces(opened.head().clone_flags);
  bool begun = false;  // Only the first ones are done outside.
  for (Step& step : opened.steps()) {
    if (step.op == Op::kNoDump) begun = true;
    // bwrap has emptied the bounding set, for which no capability is left; that is looked at.
    if (step.op == Op::kDropCapabilities) step.value = 3;
    if (wording.Take(step)) continue;
    if (!begun && IsOutside(step.op)) {
      outside.push_back(step);
    } else if (step.op != Op::kDieWithParent) {  // bwrap has asked for SIGKILL, which is more.
      (step.op >= kFirstCommandOp ? command : inside).push_back(step);
    }
  }
  if (walls.files.size() + static_cast<std::size_t>(first_slot) + kBecomeFiles > kMaxSlots) {
    return std::unexpected(Lacking("this policy", "it has too many files to hand over", "use --backend native"));
  }
  auto checks = wording.Checks();
  if (!checks) return std::unexpected(checks.error());
  if (request.facts.privileged) {
    const uid_t guest = PickGuestUid(request.run_id);
    outside.push_back({.op = Op::kSetIds, .slot = -1, .value = guest, .more_value = guest});
    outside.push_back({.op = Op::kDieWithParent, .slot = -1});  // A change of ids takes the first one back.
  }
  outside.push_back(
      {.op = Op::kBecome, .slot = static_cast<std::int16_t>(first_slot), .text = opened.Intern(walls.program)});
  std::vector<Step>& steps = opened.steps();
  steps = std::move(outside);
  // Right behind its first step: before anything else is done behind those walls.
  inside.insert(inside.begin() + 1, checks->begin(), checks->end());
  steps.insert(steps.end(), inside.begin(), inside.end());
  steps.insert(steps.end(), command.begin(), command.end());
  opened.head().clone_flags = 0;
  opened.Close();
  compiled.walls = std::move(walls);
  return {};
}

}  // namespace

std::expected<CompiledPlan, CompileError> CompileForBwrap(const Request& request) {
  if (auto good = CheckPolicy(request); !good) return std::unexpected(good.error());
  // What bwrap needs of the kernel it finds for itself; where it has a profile of its own that is more than its caller
  // could have.
  sys::HostFacts facts = request.facts;
  facts.user_namespaces = true;
  facts.mount_setattr = true;
  if (facts.privileged) {
    facts.privileged = false;
    facts.uid = facts.gid = PickGuestUid(request.run_id);
  }
  auto compiled = Compile(WithFacts(request, facts));
  if (!compiled) return compiled;
  if (auto done = Split(request, *compiled); !done) return std::unexpected(done.error());
  TellWalls(request, compiled->receipt);
  // Beside init it has a process that waits for the end.
  ++compiled->own_tasks;
  if (compiled->cgroup_limits.processes != kUnlimited) {
    compiled->cgroup_limits.processes = TasksFor(request.policy.limits, compiled->own_tasks);
  }
  return compiled;
}

}  // namespace belljar::plan
