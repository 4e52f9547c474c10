#include "prove/judge.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

namespace belljar::prove {
namespace {

// In force at every level, and so no lines of the receipt.
constexpr std::array<std::string_view, 5> kAlways = {"descriptors", "environment", "open files", "output limit",
                                                     "supervisor"};

bool InForce(const Receipt& receipt, const Holder& holder) {
  if (std::ranges::find(kAlways, holder.guard) != kAlways.end()) return true;
  const auto found = std::ranges::find(receipt.guards, holder.guard, &GuardReceipt::guard);
  if (found == receipt.guards.end()) return false;
  if (found->state == GuardState::kEnforced) return true;
  // What a cgroup counts it counts in full; its gaps are other things, which have cases of their own where they can be
  // held.
  return found->state == GuardState::kPartial && (!holder.only_in_full || found->by.starts_with("cgroup"));
}

bool Lists(const Case& c, std::string_view guard) {
  return std::ranges::find(c.guards, guard, &Holder::guard) != c.guards.end();
}

std::string_view GuardOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kTimedOut: return "wall limit";
    case Verdict::kCpuTime: return "cpu_time limit";
    case Verdict::kOutOfMemory: return "memory limit";
    case Verdict::kProcessLimit: return "process limit";
    case Verdict::kDiskLimit: return "disk limit";
    case Verdict::kFileSize: return "disk limit";
    case Verdict::kOutputLimit: return "output limit";
    case Verdict::kSyscall: return "seccomp";
    default: return {};
  }
}

// Only where an errno has one meaning among the guards that the case names.
std::string_view GuardOf(int error) {
  switch (error) {
    case EROFS: return "root filesystem";
    case ENOSPC:
    case EDQUOT: return "disk limit";
    case ESRCH: return "pid namespace";
    case EMFILE: return "open files";
    default: return {};
  }
}

}  // namespace

Inside ReadInside(const Case& c, const Result& result, int survivors, std::uint64_t output_limit) {
  using Kind = Inside::Kind;
  if (result.verdict == Verdict::kRefused || result.verdict == Verdict::kFailed)
    return {Kind::kFailed, 0, result.message};
  if (survivors > 0) return {Kind::kWorked, 0, fmt::format("{} of its processes outlived the run", survivors)};
  if (c.Has(kLeavesProcesses)) return {Kind::kHeld, 0, fmt::format("{}, and nothing lives on", Name(result.verdict))};
  if (c.Has(kFloodsOutput)) {
    // A line in the middle says how much is missing.
    constexpr std::uint64_t kSlack = 256;
    const bool held = result.out.data.size() <= output_limit + kSlack;
    return {held ? Kind::kHeld : Kind::kWorked, 0, fmt::format("{} bytes were kept", result.out.data.size())};
  }
  const Outcome outcome = ReadOutcome(result.out.data);
  switch (outcome.kind) {
    case Outcome::Kind::kWorked: return {Kind::kWorked, 0, outcome.Text()};
    case Outcome::Kind::kRefused:
    case Outcome::Kind::kUnable: return {Kind::kHeld, outcome.error, outcome.Text()};
    case Outcome::Kind::kSilent: break;
  }
  const std::string ending = result.message.empty() ? std::string(Name(result.verdict)) : result.message;
  if (c.Has(kEndedByGuard) && result.verdict != Verdict::kExited && result.verdict != Verdict::kCancelled) {
    return {Kind::kHeld, 0, ending};
  }
  std::string why = "the guest ended without a word: " + ending;
  if (!result.err.data.empty()) why += "; " + result.err.data.substr(0, result.err.data.find('\n'));
  return {Kind::kFailed, 0, std::move(why)};
}

std::string HeldBy(const Case& c, const Result& result, int error) {
  if (const std::string_view guard = GuardOf(result.verdict); !guard.empty()) {
    const bool files = result.verdict == Verdict::kDiskLimit && Lists(c, "files limit");
    return files ? "files limit" : std::string(guard);
  }
  const bool refused_call = std::ranges::any_of(result.denials, [](const Denial& d) { return d.kind == "syscall"; });
  if (refused_call && Lists(c, "seccomp")) return "seccomp";
  if (const std::string_view guard = GuardOf(error); Lists(c, guard)) return std::string(guard);
  for (const Holder& holder : c.guards) {
    // Without a denial it was not the filter, if another of its guards can have been it.
    if (holder.guard == "seccomp" && !refused_call && c.guards.size() > 1) continue;
    if (InForce(result.receipt, holder)) return holder.guard;
  }
  return c.guards.empty() ? std::string() : c.guards.front().guard;
}

bool IsPromised(const Case& c, const Receipt& receipt) {
  return std::ranges::any_of(c.guards, [&](const Holder& holder) { return InForce(receipt, holder); });
}

}  // namespace belljar::prove
