#include "plan/explain.h"

#include <linux/mount.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"

namespace belljar::plan {
namespace {

std::string_view RlimitName(std::uint64_t resource) {
  switch (resource) {
    case RLIMIT_CORE: return "RLIMIT_CORE";
    case RLIMIT_NOFILE: return "RLIMIT_NOFILE";
    case RLIMIT_FSIZE: return "RLIMIT_FSIZE";
    case RLIMIT_CPU: return "RLIMIT_CPU";
    case RLIMIT_MEMLOCK: return "RLIMIT_MEMLOCK";
    case RLIMIT_RTPRIO: return "RLIMIT_RTPRIO";
    case RLIMIT_MSGQUEUE: return "RLIMIT_MSGQUEUE";
    case RLIMIT_SIGPENDING: return "RLIMIT_SIGPENDING";
    case RLIMIT_NPROC: return "RLIMIT_NPROC";
    default: return "an rlimit";
  }
}

// Options are stored as pairs of strings.
std::string OptionText(const char* options) {
  std::string result;
  while (*options != '\0') {
    const std::string_view key(options);
    const std::string_view value(options + key.size() + 1);
    result += fmt::format("{}{}={}", result.empty() ? "" : ",", key, value);
    options = value.data() + value.size() + 1;
  }
  return result;
}

std::string NamespaceList(std::uint32_t flags) {
  constexpr std::pair<std::uint32_t, std::string_view> kNames[] = {
      {CLONE_NEWUSER, "user"}, {CLONE_NEWNS, "mount"}, {CLONE_NEWPID, "pid"},      {CLONE_NEWNET, "network"},
      {CLONE_NEWIPC, "ipc"},   {CLONE_NEWUTS, "uts"},  {CLONE_NEWCGROUP, "cgroup"}};
  std::string result;
  for (const auto& [flag, name] : kNames) {
    if ((flags & flag) != 0) result += fmt::format("{}{}", result.empty() ? "" : ", ", name);
  }
  return result.empty() ? "no new namespace" : "new namespaces: " + result;
}

using Texts = std::pair<std::string, std::string>;

Texts DescribeFiles(const LaunchPlan& plan, const Step& step) {
  const char* text = Text(plan, step.text);
  const char* more = Text(plan, step.more);
  switch (step.op) {
    case Op::kPrivateMounts: return {"make all mounts private", "no mount made here reaches the host"};
    case Op::kNewRoot:
      return {fmt::format("start an empty root (tmpfs {})", OptionText(text)),
              "nothing of the host is there unless named below"};
    case Op::kHostRoot:
      return {"keep the host's file tree", "level process and the Landlock form have no root of their own"};
    case Op::kDirectory: return {fmt::format("make directory {}", text), "a place to mount on"};
    case Op::kSymlink: return {fmt::format("link {} to {}", text, more), "the usual names work"};
    case Op::kFile: return {fmt::format("write {}", text), "a synthetic file instead of the host's"};
    case Op::kMountPoint:
      return {fmt::format("make mount point {}", text), "found without following links, inside the root only"};
    case Op::kBind:
      return {fmt::format("mount {} at {}, {}{}", more, text,
                          (step.value & MOUNT_ATTR_RDONLY) != 0 ? "read-only" : "writable",
                          step.slot >= 0 ? ", its owner mapped to the guest" : ""),
              (step.value & MOUNT_ATTR_RDONLY) != 0 ? "the guest can read but not change it"
                                                    : "granted by the policy; no set-uid files, no devices"};
    case Op::kTmpfs:
      return {fmt::format("private filesystem at {} ({})", text, OptionText(more)),
              "bounded, and gone with the sandbox"};
    case Op::kDevice: return {fmt::format("make device {}", text), "one of six that tell and keep nothing"};
    case Op::kProc: return {fmt::format("fresh proc at {}", text), "shows the sandbox's processes only"};
    case Op::kDevpts: return {fmt::format("fresh terminals at {}", text), "the host's terminals are out of reach"};
    case Op::kTerminals: return {"fresh terminals without a name inside", "no command can open another one's terminal"};
    case Op::kMaskSource:
      return {fmt::format("mount an empty directory at {}", text),
              "nothing there, and a cover for what must not be seen"};
    case Op::kMask:
    case Op::kCovered: return {fmt::format("cover {}", text), "tells about the host, or was hidden by the policy"};
    case Op::kReadOnly: return {fmt::format("make {} read-only", text), "kernel settings can't be changed"};
    case Op::kSameFile:
      return {fmt::format("see that {} is what was meant", text), "nobody has put a link in the way of the mount"};
    case Op::kSealRoot: return {"make the root read-only", "the guest can't change its own root"};
    case Op::kPivot: return {"pivot into the root, detach the host's tree", "no path leads back to the host's files"};
    case Op::kWatchCovers:
      return {"watch what covers files of the host",
              "a file that the host replaces loses its cover; the sandbox ends then"};
    default: return {};
  }
}

Texts DescribeGuards(const LaunchPlan& plan, const Step& step) {
  const char* text = Text(plan, step.text);
  switch (step.op) {
    case Op::kScopeSignals:
      return {"init may signal its own descendants only", "so it can kill all of them at once, however they hide"};
    case Op::kRlimit:
    case Op::kCommandRlimit:
      return {fmt::format("set {} to {}", RlimitName(step.value), step.more_value), "a bound for each process"};
    case Op::kAffinity: return {fmt::format("stay on {} CPUs", step.value), "limits.cpus where no cgroup can be had"};
    case Op::kLandlockRules: return {"start Landlock rules", "a second wall, by another mechanism than mounts"};
    case Op::kLandlockAllow:
      return {
          fmt::format("Landlock: allow {} {}", (step.value & 2) != 0 ? "read and write below" : "reading below", text),
          "all else is denied, also if a mount went wrong"};
    case Op::kSetIds: return {"drop groups, become the guest's own host uid", "a guest that gets out is nobody"};
    case Op::kUserNamespace:
      return {"enter a user namespace that owns no other namespace", "power won inside is none outside"};
    case Op::kDropCapabilities:
      return {step.value == 2   ? "empty the capability bounding set"
              : step.value == 1 ? "drop all capabilities, bounding set included"
              : step.value == 3 ? "drop all capabilities, see that the bounding set is empty"
                                : "drop all capabilities",
              "no privileged kernel operation"};
    case Op::kNoNewPrivileges: return {"set no_new_privs", "set-uid programs and file capabilities give nothing"};
    case Op::kLandlockEnforce:
      return {"enforce Landlock", "files, signals and abstract sockets outside are out of reach"};
    case Op::kTraceFilter:
      return {"load the filter that stops at calls with paths and addresses", "what is refused or missing is recorded"};
    case Op::kSeccomp:
      return {fmt::format("load the seccomp allow-list ({} instructions)", plan.filter_length),
              step.value == 1 ? "unneeded system calls are refused and counted" : "unneeded system calls are refused"};
    default: return {};
  }
}

const char* Program(const LaunchPlan& plan) {
  const CommandBlock* const command = OwnCommand(plan);
  return command == nullptr ? "the command, once it is known" : Text(*command, *Offsets(*command, command->argv));
}

Texts DescribeIdentity(const LaunchPlan& plan, const Step& step) {
  const char* text = Text(plan, step.text);
  switch (step.op) {
    case Op::kHideCaller: return {"wipe the caller's arguments and environment", "no secret of the caller in /proc/1"};
    case Op::kDieWithParent: return {"die with the caller", "nothing survives kill -9 of Belljar"};
    case Op::kJoinCgroup: return {"join the run's cgroup", "limits count all processes together from the start"};
    case Op::kCgroupNamespace: return {"enter a cgroup namespace", "the host's cgroup paths are not told"};
    case Op::kOomScore:
      return {fmt::format("raise the OOM score to {}", text), "guests die before host processes when memory runs out"};
    case Op::kMapIds: return {fmt::format("map the ids ({})", text), "root inside is nobody outside"};
    case Op::kBecome: return {fmt::format("become {}", text), "it makes the namespaces and the root, and starts init"};
    case Op::kInside: return {"tell Belljar which process init is", "it can be ended at once, with all inside"};
    case Op::kNoDump: return {"make init untraceable", "the guest can't read or trace init"};
    case Op::kHostname: return {fmt::format("set the hostname to {}", text), "the host's name is not told"};
    case Op::kJoinNetwork:
      return {"join the network namespace that the janitor made",
              "loopback is up for local servers; no route leads out"};
    case Op::kNetworkAhead:
      return {"start in a network namespace that the launcher made ahead",
              "loopback is up for local servers; no route leads out"};
    case Op::kLoopback: return {"bring the sandbox's own loopback up", "local servers work; no route leads out"};
    case Op::kSocketDiag:
      return {"hand out a view of the sandbox's sockets", "memory in their buffers is counted, which cgroups don't"};
    case Op::kTerminal:
      return {"open a pseudo-terminal of the sandbox", "no descriptor of the caller's terminal gets inside"};
    case Op::kSubreaper: return {"adopt orphans", "detached children are found and killed"};
    case Op::kCloseForeign:
      return {"close what the caller has open for others", "other runs see their own ends, and nothing gets inside"};
    case Op::kCloseFds: return {"close every other descriptor", "no open file of the caller gets inside"};
    case Op::kNewSession: return {"start a new session", "no controlling terminal of the caller"};
    case Op::kStdio: return {"connect standard input, output and error", "only descriptors 0 to 2 are open"};
    case Op::kWorkdir: return {fmt::format("change to {}", text), "checked inside the new root"};
    case Op::kTraceMe: return {"wait until Belljar follows this process", "nothing of the guest's runs unseen"};
    case Op::kExec: return {fmt::format("execute {}", Program(plan)), "the first instruction of the guest"};
    default: return {};
  }
}

}  // namespace

StepText Describe(const LaunchPlan& plan, const Step& step) {
  Texts texts = DescribeFiles(plan, step);
  if (texts.first.empty()) texts = DescribeGuards(plan, step);
  if (texts.first.empty()) texts = DescribeIdentity(plan, step);
  return {.who = step.op >= kFirstCommandOp ? "command" : "init", .what = texts.first, .why = texts.second};
}

std::string DescribeStep(const LaunchPlan& plan, std::int32_t index) {
  if (index < 0 || static_cast<std::uint32_t>(index) >= plan.step_count) return {};
  return Describe(plan, Steps(plan)[index]).what;
}

std::string PathOfStep(const LaunchPlan& plan, std::int32_t index) {
  if (index < 0 || static_cast<std::uint32_t>(index) >= plan.step_count) return {};
  return Text(plan, Steps(plan)[index].text);
}

std::vector<StepText> Explain(const CompiledPlan& compiled) {
  std::vector<StepText> texts;
  const LaunchPlan& plan = compiled.plan();
  if (!compiled.cgroup_paths.empty() || !compiled.private_directory.empty()) {
    texts.push_back({"parent", "start the janitor", "cleans up if Belljar itself is killed"});
  }
  if (compiled.janitor_makes_network) {
    texts.push_back(
        {"janitor", "make a network namespace, bring its loopback up", "beside the steps below: it is slow"});
  }
  if (!compiled.private_directory.empty()) {
    texts.push_back({"parent", "make a private directory", "a fresh working directory, removed afterwards"});
  }
  for (const std::string& path : compiled.cgroup_paths) {
    const std::size_t at = path.rfind('/');
    texts.push_back({"parent", fmt::format("make cgroup {} in {}", compiled.cgroup_name, path.substr(0, at)),
                     "limits and accounts of all processes together"});
  }
  for (const IdMap& map : compiled.id_maps) {
    texts.push_back({"parent", fmt::format("map files of uid {} to the guest", map.file_uid),
                     "mounted files stay usable on both sides"});
  }
  if (compiled.walls) {
    texts.push_back({"parent", "clone a process outside", "it prepares what has to be done before there are walls"});
  } else {
    texts.push_back({"parent", "clone init, " + NamespaceList(plan.clone_flags), "own view of each kernel resource"});
  }
  bool walled = false;
  for (std::uint32_t i = 0; i < plan.step_count; ++i) {
    const Step& step = Steps(plan)[i];
    if (step.op == Op::kMountPoint) continue;  // Part of the mount that follows.
    if (step.op == Op::kMask && i > 0 && Steps(plan)[i - 1].op == Op::kMask) {
      texts.back().what += fmt::format(", {}", Text(plan, step.text));  // Fifty lines that say the same help nobody.
      continue;
    }
    texts.push_back(Describe(plan, step));
    if (step.op == Op::kInside) walled = true;
    if (compiled.walls && !walled) texts.back().who = "outside";
    if (step.op == Op::kBecome) {
      std::string words;
      for (const std::string& word : compiled.walls->arguments) words += " " + base::ShellWord(word);
      texts.push_back({"bwrap", "do as told:" + words, "the same tree as Belljar's own, in bwrap's words"});
    }
    if (step.op == Op::kStdio) {
      for (const ChannelReceipt& channel : compiled.receipt.channels) {
        texts.push_back(
            {"command",
             fmt::format("take channel {}{}{}", channel.number, channel.name.empty() ? "" : ", ", channel.name),
             "a descriptor that the caller gave; all others are closed"});
      }
    }
    if (step.op != Op::kBind) continue;
    for (const Brought& brought : compiled.receipt.brought) {
      if (brought.path == Text(plan, step.text)) texts.back().why = brought.why;
    }
  }
  return texts;
}

}  // namespace belljar::plan
