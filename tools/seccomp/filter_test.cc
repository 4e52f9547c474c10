// The compiled filters against the lists: a BPF interpreter runs the instructions, a second reading of the rules, which
// shares nothing with the code generator, says what must come out.
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "plan/seccomp_filter.h"
#include "seccomp/compile.h"
#include "seccomp/graph.h"
#include "seccomp/resolve.h"

namespace belljar::seccomp {
namespace {

using plan::FilterVariant;
using plan::KernelFilter;
using plan::Narrowing;
using plan::NarrowingFilter;
using Filter = std::span<const sock_filter>;

constexpr std::uint32_t kNoSuchReturn = 0xdeadbeef;

/// What the kernel would answer; kNoSuchReturn for anything that its checker would refuse.
std::uint32_t Interpret(Filter filter, const seccomp_data& data) {
  std::uint32_t accumulator = 0;
  for (std::size_t at = 0; at < filter.size(); ++at) {
    const sock_filter& op = filter[at];
    switch (op.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        if (op.k % 4 != 0 || op.k + 4 > sizeof data) return kNoSuchReturn;
        std::memcpy(&accumulator, reinterpret_cast<const char*>(&data) + op.k, 4);
        break;
      case BPF_ALU | BPF_AND | BPF_K: accumulator &= op.k; break;
      case BPF_JMP | BPF_JA: at += op.k; break;
      case BPF_JMP | BPF_JEQ | BPF_K: at += accumulator == op.k ? op.jt : op.jf; break;
      case BPF_JMP | BPF_JGE | BPF_K: at += accumulator >= op.k ? op.jt : op.jf; break;
      case BPF_JMP | BPF_JSET | BPF_K: at += (accumulator & op.k) != 0 ? op.jt : op.jf; break;
      case BPF_RET | BPF_K: return op.k;
      default: return kNoSuchReturn;
    }
  }
  return kNoSuchReturn;
}

bool Holds(const Condition& condition, const std::uint64_t* arguments) {
  std::uint64_t value = arguments[condition.argument];
  if (condition.width == Width::k32) value &= UINT32_MAX;
  value &= condition.mask;
  bool found = false;
  for (const Range& range : condition.values) found = found || (range.first <= value && value <= range.last);
  return found == (condition.sense == Sense::kIn);
}

const Action* Decide(const std::vector<Rule>& rules, const std::string& name, const std::set<std::string>& sections,
                     const std::uint64_t* arguments) {
  for (const Rule& rule : rules) {
    if (rule.name != name || (!rule.section.empty() && !sections.contains(rule.section))) continue;
    bool all = true;
    for (const Condition& condition : rule.conditions) all = all && Holds(condition, arguments);
    if (all) return &rule.action;
  }
  return nullptr;
}

std::uint32_t ReturnOf(const Action& action, FilterVariant variant) {
  if (action.verb == Verb::kAllow) return SECCOMP_RET_ALLOW;
  if (action.verb == Verb::kKill) return SECCOMP_RET_KILL_PROCESS;
  if (variant == FilterVariant::kNotify && action.notice == Notice::kReported) return SECCOMP_RET_USER_NOTIF;
  return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(action.error);
}

RuleFile Load(const std::string& name, FileKind kind) {
  const std::string path = "profiles/" + name;
  std::ifstream stream(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  Result<RuleFile> file = ParseRules(text, path, kind);
  EXPECT_TRUE(file) << file.error();
  return file ? *std::move(file) : RuleFile{};
}

seccomp_data Data(long number, std::uint32_t arch = AuditArch(NativeArch())) {
  seccomp_data data{};
  data.nr = static_cast<int>(number);
  data.arch = arch;
  return data;
}

/// Argument values worth trying: all that any rule of the call names, their neighbours, single bits, and rubbish above.
std::vector<std::uint64_t> InterestingValues(const std::vector<const Rule*>& rules) {
  std::set<std::uint64_t> values = {0, 1, 2, 0xffffffffU, UINT64_MAX, 0x80000000U, 0x100000000U};
  for (unsigned bit = 0; bit < 64; ++bit) values.insert(1ULL << bit);
  for (const Rule* rule : rules) {
    for (const Condition& condition : rule->conditions) {
      for (const Range& range : condition.values) {
        for (const std::uint64_t value : {range.first, range.last}) {
          values.insert({value, value - 1, value + 1, value | ~condition.mask, value | 1ULL << 32, value | 1ULL << 63,
                         value | 0x80000U, value | 0x800U, value << 32});
        }
      }
    }
  }
  return {values.begin(), values.end()};
}

/// Calls `check` with many argument vectors: every pair over the arguments that rules look at, and random triples.
template <typename Check>
void ForArguments(const std::vector<const Rule*>& rules, std::mt19937_64& random, const Check& check) {
  const std::vector<std::uint64_t> values = InterestingValues(rules);
  bool conditional = false;
  for (const Rule* rule : rules) conditional = conditional || !rule->conditions.empty();
  const auto pick = [&] { return values[random() % values.size()]; };
  const int rounds = conditional ? 20000 : 20;
  for (int round = 0; round < rounds; ++round) {
    std::uint64_t arguments[6] = {pick(), pick(), pick(), pick(), pick(), pick()};
    check(arguments);
  }
  if (!conditional) return;
  for (unsigned which = 0; which < 4; ++which) {
    for (const std::uint64_t value : values) {
      std::uint64_t arguments[6] = {pick(), pick(), pick(), pick(), pick(), pick()};
      arguments[which] = value;
      check(arguments);
    }
  }
}

struct Variant {
  FilterVariant variant;
  unsigned bits;
};

Narrowing NarrowingOf(unsigned bits) { return {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0}; }

std::set<std::string> SectionsOfBits(unsigned bits) {
  std::set<std::string> sections;
  if ((bits & 1) != 0) sections.insert("no_uncounted");
  if ((bits & 2) != 0) sections.insert("no_others");
  if ((bits & 4) != 0) sections.insert("no_host_reach");
  return sections;
}

class EveryFilter : public testing::TestWithParam<Variant> {
 protected:
  RuleFile kernel_ = Load("kernel.seccomp", FileKind::kKernel);
  RuleFile narrowing_ = Load("narrowing.seccomp", FileKind::kNarrowing);

  std::vector<const Rule*> RulesOf(std::string_view name) const {
    std::vector<const Rule*> rules;
    for (const RuleFile* file : {&narrowing_, &kernel_}) {
      for (const Rule& rule : file->rules) {
        if (rule.name == name) rules.push_back(&rule);
      }
    }
    return rules;
  }
};

TEST_P(EveryFilter, AnswersAsTheListsSay) {
  const auto [variant, bits] = GetParam();
  const Filter filter = KernelFilter(variant, NarrowingOf(bits));
  const Filter stacked = NarrowingFilter(NarrowingOf(bits));
  const std::set<std::string> sections = SectionsOfBits(bits);
  std::mt19937_64 random(bits + 1);
  std::size_t known = 0;
  for (int number = 0; number <= 600; ++number) {
    const std::string name(plan::CallName(number));
    const std::vector<const Rule*> rules = RulesOf(name);
    if (!name.empty()) ++known;
    ForArguments(rules, random, [&](const std::uint64_t(&arguments)[6]) {
      seccomp_data data = Data(number);
      std::memcpy(data.args, arguments, sizeof arguments);
      const Action* narrowed = Decide(narrowing_.rules, name, sections, arguments);
      const Action* decided = narrowed != nullptr ? narrowed : Decide(kernel_.rules, name, {}, arguments);
      const std::uint32_t expected =
          decided != nullptr ? ReturnOf(*decided, variant) : std::uint32_t{SECCOMP_RET_ERRNO | ENOSYS};
      ASSERT_EQ(Interpret(filter, data), expected) << name << ' ' << number;
      if (stacked.empty()) return;
      const std::uint32_t alone = narrowed != nullptr ? ReturnOf(*narrowed, FilterVariant::kErrno) : SECCOMP_RET_ALLOW;
      ASSERT_EQ(Interpret(stacked, data), alone) << name << ' ' << number;
    });
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(known, 300U);
}

TEST_P(EveryFilter, RefusesOtherArchitecturesAndNumbers) {
  const auto [variant, bits] = GetParam();
  const Filter filter = KernelFilter(variant, NarrowingOf(bits));
  for (const std::uint32_t arch :
       std::initializer_list<std::uint32_t>{AUDIT_ARCH_I386, AUDIT_ARCH_ARM, 0, UINT32_MAX}) {
    for (int number = 0; number < 600; ++number) {
      ASSERT_EQ(Interpret(filter, Data(number, arch)), std::uint32_t{SECCOMP_RET_KILL_PROCESS});
    }
  }
#if defined(__x86_64__)
  for (const std::uint32_t number : {0x40000000U, 0x40000001U, 0x40000200U, 0x4fffffffU, 0x7fffffffU}) {
    EXPECT_EQ(Interpret(filter, Data(number)), std::uint32_t{SECCOMP_RET_KILL_PROCESS}) << number;
  }
#endif
  for (const std::uint32_t number : {600U, 1023U, 0x3fffffffU, 0x80000000U, 0xc0000000U, 0xffffffffU}) {
    EXPECT_EQ(Interpret(filter, Data(number)), std::uint32_t{SECCOMP_RET_ERRNO | ENOSYS}) << number;
  }
}

// The kernel refuses more than 4096; the size is what start-up pays for.
TEST_P(EveryFilter, StaysSmall) {
  const auto [variant, bits] = GetParam();
  EXPECT_LT(KernelFilter(variant, NarrowingOf(bits)).size(), 360U);
  EXPECT_LT(NarrowingFilter(NarrowingOf(bits)).size(), 90U);
  EXPECT_EQ(NarrowingFilter(NarrowingOf(bits)).empty(), bits == 0);
}

std::vector<Variant> AllVariants() {
  std::vector<Variant> all;
  for (unsigned bits = 0; bits < 8; ++bits) {
    all.push_back({FilterVariant::kNotify, bits});
    all.push_back({FilterVariant::kErrno, bits});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Seccomp, EveryFilter, testing::ValuesIn(AllVariants()), [](const auto& test) {
  return std::string(test.param.variant == FilterVariant::kNotify ? "Notify" : "Errno") +
         std::to_string(test.param.bits);
});

// Facts written out by hand, so that a mistake in the lists themselves, or in reading them, shows too.
TEST(KernelFilterFacts, HighBitsDoNotHideATerminalRequest) {
  const Filter filter = KernelFilter(FilterVariant::kErrno);
  for (const std::uint64_t high : {0ULL, 1ULL << 32, 0xffffffffULL << 32, 1ULL << 63}) {
    seccomp_data data = Data(SYS_ioctl);
    for (const std::uint64_t request : {TIOCSTI, 0x541C /* TIOCLINUX */, TIOCSETD, TIOCCONS}) {
      data.args[1] = request | high;
      EXPECT_EQ(Interpret(filter, data), std::uint32_t{SECCOMP_RET_ERRNO | EPERM}) << request;
    }
    data.args[1] = TCGETS | high;
    EXPECT_EQ(Interpret(filter, data), std::uint32_t{SECCOMP_RET_ALLOW});
  }
}

TEST(KernelFilterFacts, Sockets) {
  const Filter filter = KernelFilter(FilterVariant::kErrno);
  const auto ask = [&](std::uint64_t family, std::uint64_t type, std::uint64_t protocol) {
    seccomp_data data = Data(SYS_socket);
    data.args[0] = family;
    data.args[1] = type;
    data.args[2] = protocol;
    return Interpret(filter, data);
  };
  constexpr std::uint32_t kAllowed = SECCOMP_RET_ALLOW;
  constexpr std::uint32_t kRefused = SECCOMP_RET_ERRNO | EPERM;
  EXPECT_EQ(ask(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), kAllowed);
  EXPECT_EQ(ask(AF_UNIX, SOCK_SEQPACKET, 0), kAllowed);
  EXPECT_EQ(ask(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), kAllowed);
  EXPECT_EQ(ask(AF_INET6, SOCK_STREAM, 6), kAllowed);
  EXPECT_EQ(ask(AF_INET, SOCK_DGRAM, 17), kAllowed);
  EXPECT_EQ(ask(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0), kAllowed);
  EXPECT_EQ(ask(AF_INET, SOCK_STREAM, 262), std::uint32_t{SECCOMP_RET_ERRNO | EPROTONOSUPPORT}) << "MPTCP";
  EXPECT_EQ(ask(AF_INET, SOCK_STREAM, 132), kRefused) << "SCTP";
  EXPECT_EQ(ask(AF_INET, SOCK_SEQPACKET, 132), kRefused) << "SCTP";
  EXPECT_EQ(ask(AF_INET, SOCK_DGRAM, 1), kRefused) << "ICMP";
  EXPECT_EQ(ask(AF_INET, SOCK_DGRAM, 136), kRefused) << "UDPLITE";
  EXPECT_EQ(ask(AF_INET, SOCK_RAW, 1), kRefused);
  EXPECT_EQ(ask(AF_INET, SOCK_STREAM | 0x10, 0), kRefused) << "an unknown type bit";
  EXPECT_EQ(ask(AF_UNIX, SOCK_RAW, 0), kRefused);
  for (std::uint64_t protocol = 1; protocol < 32; ++protocol) EXPECT_EQ(ask(AF_NETLINK, SOCK_RAW, protocol), kRefused);
  for (std::uint64_t family = 0; family < 64; ++family) {
    if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK) continue;
    for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_PACKET}) {
      EXPECT_EQ(ask(family, type, 0), kRefused) << family;
    }
  }
}

TEST(KernelFilterFacts, CloneNamespacesAndClone3) {
  const Filter filter = KernelFilter(FilterVariant::kNotify);
  seccomp_data data = Data(SYS_clone);
  data.args[0] = 0x3d0f00;  // what glibc's pthread_create passes
  EXPECT_EQ(Interpret(filter, data), std::uint32_t{SECCOMP_RET_ALLOW});
  for (const std::uint64_t flag :
       {0x00020000U, 0x02000000U, 0x04000000U, 0x08000000U, 0x10000000U, 0x20000000U, 0x40000000U, 0x00008000U}) {
    data.args[0] = flag | 17;
    EXPECT_EQ(Interpret(filter, data), std::uint32_t{SECCOMP_RET_USER_NOTIF}) << flag;
  }
  EXPECT_EQ(Interpret(filter, Data(435)), std::uint32_t{SECCOMP_RET_ERRNO | ENOSYS}) << "clone3";
}

TEST(KernelFilterFacts, DangerousCallsAreNeverAllowed) {
  const long dangerous[] = {SYS_bpf,
                            SYS_perf_event_open,
                            SYS_userfaultfd,
                            SYS_keyctl,
                            SYS_add_key,
                            SYS_request_key,
                            SYS_ptrace,
                            SYS_process_vm_readv,
                            SYS_process_vm_writev,
                            SYS_kcmp,
                            SYS_mount,
                            SYS_umount2,
                            SYS_pivot_root,
                            SYS_chroot,
                            SYS_unshare,
                            SYS_setns,
                            SYS_kexec_load,
                            SYS_init_module,
                            SYS_finit_module,
                            SYS_delete_module,
                            SYS_reboot,
                            SYS_swapon,
                            SYS_swapoff,
                            SYS_acct,
                            SYS_quotactl,
                            SYS_syslog,
                            SYS_settimeofday,
                            SYS_clock_settime,
                            SYS_adjtimex,
                            SYS_seccomp,
                            SYS_clock_adjtime,
                            SYS_remap_file_pages,
                            SYS_fanotify_init,
                            SYS_mbind,
                            SYS_set_mempolicy,
                            SYS_migrate_pages,
                            SYS_move_pages,
                            SYS_name_to_handle_at,
                            SYS_open_by_handle_at,
                            SYS_vmsplice,
                            SYS_io_uring_setup,
                            SYS_io_uring_enter,
                            SYS_io_uring_register,
                            SYS_open_tree,
                            SYS_move_mount,
                            SYS_fsopen,
                            SYS_fsconfig,
                            SYS_fsmount,
                            SYS_fspick,
                            SYS_mount_setattr,
                            SYS_pidfd_getfd,
                            SYS_process_madvise,
                            SYS_memfd_secret,
                            SYS_mlockall,
                            SYS_landlock_create_ruleset,
                            SYS_sched_setattr};
  for (const long number : dangerous) {
    for (const FilterVariant variant : {FilterVariant::kNotify, FilterVariant::kErrno}) {
      EXPECT_NE(Interpret(KernelFilter(variant), Data(number)), std::uint32_t{SECCOMP_RET_ALLOW})
          << plan::CallName(static_cast<int>(number));
    }
  }
}

TEST(DescribeDenied, AgreesWithTheErrnoVariant) {
  const Filter notify = KernelFilter(FilterVariant::kNotify, {true, true, true});
  const Filter with_errno = KernelFilter(FilterVariant::kErrno, {true, true, true});
  int reported = 0;
  for (int number = 0; number <= 600; ++number) {
    if (Interpret(notify, Data(number)) != SECCOMP_RET_USER_NOTIF) continue;
    ++reported;
    const plan::DeniedCall denied = plan::DescribeDenied(number, {true, true, true});
    EXPECT_EQ(Interpret(with_errno, Data(number)), SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(denied.answer_errno));
    EXPECT_EQ(denied.name, plan::CallName(number));
    EXPECT_FALSE(denied.reason.empty()) << denied.name;
  }
  EXPECT_GT(reported, 90);
  EXPECT_EQ(plan::DescribeDenied(SYS_mount).name, "mount");
  EXPECT_EQ(plan::DescribeDenied(SYS_mount).answer_errno, EPERM);
  const auto reason = [](int number, const Narrowing& narrowing) {
    return std::string(plan::DescribeDenied(number, narrowing).reason);
  };
  EXPECT_TRUE(reason(SYS_clone, {}).starts_with("a new user namespace")) << reason(SYS_clone, {});
  EXPECT_TRUE(reason(SYS_socket, {}).starts_with("raw, packet")) << reason(SYS_socket, {});
  EXPECT_TRUE(reason(SYS_socket, {.no_host_reach = true}).starts_with("the policy grants no network"));
  EXPECT_EQ(plan::DescribeDenied(599).name, "unknown");
  EXPECT_EQ(plan::DescribeDenied(-1).answer_errno, ENOSYS);
}

// Real lists stay within reach of an 8-bit jump; this one doesn't.
TEST(Graph, FarJumpsArriveToo) {
  std::mt19937 random(7);
  for (const unsigned count : {3U, 200U, 800U}) {
    Graph graph;
    std::vector<Segment> segments;
    std::vector<std::uint32_t> expected;
    for (unsigned i = 0; i < count; ++i) {
      expected.push_back(static_cast<std::uint32_t>(random() % 5));
      const NodeId leaf = graph.Return(expected.back());
      const NodeId block = graph.Load(16, graph.Jump(BPF_JEQ, i, leaf, graph.Return(9)));
      const std::uint32_t last = i + 1 == count ? UINT32_MAX : i * 3 + 2;
      segments.push_back({i * 3, last, random() % 2 == 0 ? leaf : block, 1});
    }
    const std::vector<sock_filter> code = graph.Assemble(graph.Load(0, BuildSearch(graph, segments)));
    for (unsigned i = 0; i < count; ++i) {
      seccomp_data data = Data(static_cast<long>(i) * 3 + 1);
      data.args[0] = i;
      ASSERT_EQ(Interpret(code, data), expected[i]) << i << " of " << count << " in " << code.size();
    }
  }
}

}  // namespace
}  // namespace belljar::seccomp
