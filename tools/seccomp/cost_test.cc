// What the filters cost, next to what libseccomp makes of the same list: instructions, load, one call. Printed; only
// the instruction count is asserted, because times on a shared machine are no basis for failing a build.
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

#include "plan/seccomp_filter.h"
#include "seccomp/resolve.h"

namespace belljar::seccomp {
namespace {

using Clock = std::chrono::steady_clock;

CallTable Table() {
  std::ifstream stream("profiles/kernel.seccomp", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const auto file = ParseRules(text, "kernel.seccomp", FileKind::kKernel);
  EXPECT_TRUE(file) << file.error();
  auto table = ResolveKernel(*file, NativeArch());
  EXPECT_TRUE(table) << table.error();
  return *std::move(table);
}

scmp_arg_cmp Compare(const Condition& condition, std::uint64_t value) {
  return {condition.argument, SCMP_CMP_MASKED_EQ, condition.mask & UINT32_MAX, value & UINT32_MAX};
}

/// One libseccomp rule per combination of values: it has no sets.
void AddCombinations(scmp_filter_ctx context, int number, const Rule& rule, std::vector<scmp_arg_cmp> chosen) {
  if (chosen.size() == rule.conditions.size()) {
    EXPECT_EQ(
        seccomp_rule_add_array(context, SCMP_ACT_ALLOW, number, static_cast<unsigned>(chosen.size()), chosen.data()),
        0);
    return;
  }
  const Condition& condition = rule.conditions[chosen.size()];
  for (const Range& range : condition.values) {
    std::vector<scmp_arg_cmp> more = chosen;
    more.push_back(Compare(condition, range.first));
    AddCombinations(context, number, rule, more);
  }
}

/// The list as libseccomp can say it. Its rules have no order, so "deny these values, allow the rest" (ioctl, clone,
/// mmap, setsockopt …) becomes a plain allow: in its favour.
std::vector<sock_filter> LibseccompFilter(const CallTable& table, std::uint32_t optimize) {
  const std::unique_ptr<void, decltype(&seccomp_release)> context(seccomp_init(SCMP_ACT_NOTIFY), &seccomp_release);
  EXPECT_EQ(seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, optimize), 0);
  for (const auto& [number, call] : table) {
    const int nr = static_cast<int>(number);
    const Action& otherwise = call.rules.back().action;
    if (otherwise.verb == Verb::kAllow) {
      EXPECT_EQ(seccomp_rule_add(context.get(), SCMP_ACT_ALLOW, nr, 0), 0) << call.name;
      continue;
    }
    if (call.rules.size() == 1 && otherwise.notice == Notice::kQuiet) {
      EXPECT_EQ(seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(static_cast<unsigned>(otherwise.error)), nr, 0), 0);
      continue;
    }
    for (const Rule& rule : call.rules) {
      if (rule.action.verb == Verb::kAllow) AddCombinations(context.get(), nr, rule, {});
    }
  }
  const int fd = memfd_create("filter", MFD_CLOEXEC);
  EXPECT_EQ(seccomp_export_bpf(context.get(), fd), 0);
  std::vector<sock_filter> filter(static_cast<std::size_t>(lseek(fd, 0, SEEK_END)) / sizeof(sock_filter));
  EXPECT_EQ(pread(fd, filter.data(), filter.size() * sizeof(sock_filter), 0),
            static_cast<ssize_t>(filter.size() * sizeof(sock_filter)));
  close(fd);
  return filter;
}

struct Cost {
  double load_us = 0;
  double getppid_ns = 0;
  double ioctl_ns = 0;
  double prctl_ns = 0;
};

/// The best of many short batches: on a shared machine everything else only adds.
double PerCall(auto call) {
  constexpr int kBatch = 500;
  double best = 1e9;
  for (int batch = 0; batch < 40; ++batch) {
    const auto start = Clock::now();
    for (int i = 0; i < kBatch; ++i) call();
    best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - start).count() / kBatch);
  }
  return best;
}

Cost MeasureOnce(std::span<const sock_filter> filter) {
  Cost cost;
  const auto start = Clock::now();
  if (!filter.empty()) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    const sock_fprog program{static_cast<unsigned short>(filter.size()), const_cast<sock_filter*>(filter.data())};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) _exit(1);
  }
  cost.load_us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  cost.getppid_ns = PerCall([] { syscall(SYS_getppid); });
  cost.ioctl_ns = PerCall([] { syscall(SYS_ioctl, -1, TCGETS, nullptr); });
  cost.prctl_ns = PerCall([] { syscall(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0); });
  return cost;
}

/// The best of several children, because a filter can't be taken off again.
Cost Measure(std::span<const sock_filter> filter) {
  Cost best{1e9, 1e9, 1e9, 1e9};
  for (int round = 0; round < 21; ++round) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      const Cost cost = MeasureOnce(filter);
      _exit(write(ends[1], &cost, sizeof cost) == sizeof cost ? 0 : 1);
    }
    Cost cost;
    EXPECT_EQ(read(ends[0], &cost, sizeof cost), static_cast<ssize_t>(sizeof cost));
    waitpid(child, nullptr, 0);
    close(ends[0]);
    close(ends[1]);
    best = {std::min(best.load_us, cost.load_us), std::min(best.getppid_ns, cost.getppid_ns),
            std::min(best.ioctl_ns, cost.ioctl_ns), std::min(best.prctl_ns, cost.prctl_ns)};
  }
  return best;
}

void Print(const char* name, std::span<const sock_filter> filter) {
  const Cost cost = Measure(filter);
  fmt::print("{:<28}{:>6} instructions, load {:>6.1f} µs, getppid {:>5.0f} ns, ioctl {:>5.0f} ns, prctl {:>5.0f} ns\n",
             name, filter.size(), cost.load_us, cost.getppid_ns, cost.ioctl_ns, cost.prctl_ns);
}

TEST(Cost, SmallerThanLibseccomp) {
  const CallTable table = Table();
  const std::vector<sock_filter> linear = LibseccompFilter(table, 1);
  const std::vector<sock_filter> tree = LibseccompFilter(table, 2);
  const auto ours = plan::KernelFilter(plan::FilterVariant::kNotify);
  Print("no filter", {});
  Print("libseccomp, linear", linear);
  Print("libseccomp, binary tree", tree);
  Print("belljar", ours);
  Print("belljar, form w/o namespaces",
        plan::KernelFilter(plan::FilterVariant::kNotify,
                           {.no_uncounted = true, .no_others = true, .no_host_reach = true}));
  EXPECT_LT(ours.size(), linear.size());
  EXPECT_LT(ours.size(), tree.size());
}

}  // namespace
}  // namespace belljar::seccomp
