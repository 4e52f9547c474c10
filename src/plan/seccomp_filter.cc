#include "plan/seccomp_filter.h"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "plan/seccomp_tables.h"

namespace belljar::plan {
namespace {

namespace tables = seccomp_tables;

unsigned IndexOf(const Narrowing& narrowing) {
  return (narrowing.no_uncounted ? tables::kNoUncounted : 0U) | (narrowing.no_others ? tables::kNoOthers : 0U) |
         (narrowing.no_host_reach ? tables::kNoHostReach : 0U);
}

const tables::Call* Find(int nr) {
  const auto found = std::ranges::lower_bound(tables::kCalls, nr, {}, &tables::Call::number);
  return found != tables::kCalls.end() && found->number == nr ? &*found : nullptr;
}

}  // namespace

std::span<const sock_filter> KernelFilter(FilterVariant variant, const Narrowing& narrowing) {
  const unsigned index = IndexOf(narrowing);
  return variant == FilterVariant::kNotify ? tables::kKernelNotify[index] : tables::kKernelErrno[index];
}

std::span<const sock_filter> NarrowingFilter(const Narrowing& narrowing) {
  return tables::kNarrowing[IndexOf(narrowing)];
}

DeniedCall DescribeDenied(int nr, const Narrowing& narrowing) {
  const tables::Call* call = Find(nr);
  if (call == nullptr) return {"unknown", ENOSYS, ""};
  std::string_view reason = call->reason;
  for (unsigned bit = 0; bit < std::size(call->narrowing_reasons); ++bit) {
    const bool narrowed = (IndexOf(narrowing) >> bit & 1U) != 0 && !call->narrowing_reasons[bit].empty();
    if (narrowed) reason = call->narrowing_reasons[bit];
  }
  return {call->name, call->answer_errno != 0 ? call->answer_errno : ENOSYS, reason};
}

std::string_view CallName(int nr) {
  const tables::Call* call = Find(nr);
  return call != nullptr ? call->name : std::string_view();
}

}  // namespace belljar::plan
