#include "launch/notices.h"

#include <fmt/format.h>

#include "plan/seccomp_filter.h"

namespace belljar::launch {

void Notices::Answer() {
  const auto call = listener_.Receive();
  if (!call) return;
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
  if (total_ < kMost) return;
  denials.push_back({.kind = "syscall",
                     .operation = "more",
                     .target = {},
                     .rule = fmt::format("seccomp: counting stopped after {} refused calls", kMost),
                     .grant = {},
                     .count = 1});
}

}  // namespace belljar::launch
