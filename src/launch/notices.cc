#include "launch/notices.h"

#include <algorithm>

#include <fmt/format.h>

#include "plan/seccomp_filter.h"

namespace belljar::launch {

bool Notices::TakeSharedMemory(const sys::SeccompListener::Call& call) {
  // A small one costs as much as this to answer, so that a flood of them has an end.
  constexpr std::uint64_t kLeast = 64 * 1024;
  const auto asked = sys::SharedMemoryAsked(call);
  if (!asked || (asked->outlives && segments_ == Segments::kHosts)) return false;
  const std::uint64_t bytes = std::max(asked->bytes, kLeast);
  if (shared_memory_ != nullptr && shared_memory_->Take(bytes)) return true;
  ++shared_memory_refused_;
  return false;
}

void Notices::Answer() {
  const auto call = listener_.Receive();
  if (!call) return;
  if (TakeSharedMemory(*call) && listener_.LetGoOn(*call)) return;
  ++counts_[call->number];
  listener_.Refuse(*call, plan::DescribeDenied(call->number).answer_errno);
  if (++total_ >= kMost) listener_.Close();
}

void Notices::AddTo(std::vector<Denial>& denials) const {
  for (const auto& [number, count] : counts_) {
    const plan::DeniedCall call = plan::DescribeDenied(number);
    denials.push_back({.kind = "syscall",
                       .operation = call.name == "unknown" ? fmt::format("syscall {}", number) : std::string(call.name),
                       .target = {},
                       .rule = call.reason.empty() ? "seccomp" : fmt::format("seccomp: {}", call.reason),
                       .grant = {},
                       .count = count});
  }
  if (shared_memory_refused_ > 0) {
    denials.push_back({.kind = "limit",
                       .operation = "share memory",
                       .target = {},
                       .rule = "a quarter of limits.memory for shared memory without a name, where no cgroup counts it",
                       .grant = "--memory",
                       .count = shared_memory_refused_});
  }
  if (total_ < kMost) return;
  denials.push_back({.kind = "syscall",
                     .operation = "more",
                     .target = {},
                     .rule = fmt::format("seccomp: counting stopped after {} refused calls", kMost),
                     .grant = {},
                     .count = 1});
}

}  // namespace belljar::launch
