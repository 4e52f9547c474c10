#include "seccomp/compile.h"

#include <linux/seccomp.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <optional>

#include "seccomp/graph.h"

namespace belljar::seccomp {
namespace {

// Both architectures are little-endian: the low half of an argument comes first.
constexpr std::uint32_t LowHalf(unsigned argument) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args)) + argument * 8;
}
constexpr std::uint32_t HighHalf(unsigned argument) { return LowHalf(argument) + 4; }

/// What the accumulator holds, so that a word is not loaded twice in a row.
struct Held {
  std::uint32_t offset = 0;
  std::uint32_t mask = 0;
  bool operator==(const Held&) const = default;
};

/// Whether `second`, tried right after `first`, only adds values to the set of it.
bool SameTest(const Rule& first, const Rule& second) {
  if (first.conditions.size() != 1 || second.conditions.size() != 1 || first.action != second.action) return false;
  const Condition& a = first.conditions.front();
  const Condition& b = second.conditions.front();
  return a.sense == Sense::kIn && b.sense == Sense::kIn && a.argument == b.argument && a.width == b.width &&
         a.mask == b.mask;
}

/// Lists give each reason its own line; one search over the union of the sets is cheaper than one search per line.
std::vector<Rule> JoinSets(const std::vector<Rule>& rules) {
  std::vector<Rule> joined;
  for (const Rule& rule : rules) {
    if (joined.empty() || !SameTest(joined.back(), rule)) {
      joined.push_back(rule);
      continue;
    }
    std::vector<Range> all = joined.back().conditions.front().values;
    all.insert(all.end(), rule.conditions.front().values.begin(), rule.conditions.front().values.end());
    std::ranges::sort(all);
    std::vector<Range>& values = joined.back().conditions.front().values;
    values.clear();
    for (const Range& range : all) {
      if (!values.empty() && range.first <= values.back().last) {
        values.back().last = std::max(values.back().last, range.last);
      } else {
        values.push_back(range);
      }
    }
  }
  return joined;
}

/// Turns the rules of one call into a graph, from the last rule backwards by recursion.
class CallCompiler {
 public:
  CallCompiler(Graph& graph, const Call& call, Answer answer)
      : graph_(graph), rules_(JoinSets(call.rules)), answer_(answer) {}

  NodeId Compile() { return FromRule(0, std::nullopt); }

 private:
  using Accumulator = std::optional<Held>;

  NodeId Leaf(const Action& action) {
    switch (action.verb) {
      case Verb::kAllow: return graph_.Return(SECCOMP_RET_ALLOW);
      case Verb::kKill: return graph_.Return(SECCOMP_RET_KILL_PROCESS);
      case Verb::kDeny: break;
    }
    if (answer_ == Answer::kNotify && action.notice == Notice::kReported) return graph_.Return(SECCOMP_RET_USER_NOTIF);
    return graph_.Return(SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(action.error));
  }

  NodeId FromRule(std::size_t rule, Accumulator held) { return FromCondition(rule, 0, held); }

  NodeId FromCondition(std::size_t rule, std::size_t index, Accumulator held) {
    const Rule& current = rules_[rule];
    if (index == current.conditions.size()) return Leaf(current.action);
    const Condition& condition = current.conditions[index];
    return condition.width == Width::k32 ? Test32(rule, index, condition, held) : Test64(rule, index, condition);
  }

  NodeId Loaded(std::uint32_t offset, Accumulator held, NodeId next) {
    return held == Held{offset, UINT32_MAX} ? next : graph_.Load(offset, next);
  }

  NodeId Test32(std::size_t rule, std::size_t index, const Condition& condition, Accumulator held) {
    const std::uint32_t offset = LowHalf(condition.argument);
    const auto mask = static_cast<std::uint32_t>(condition.mask);
    const bool any_bit = condition.values.size() == 1 && condition.values.front() == Range{0, 0} && mask != UINT32_MAX;
    const Held after{offset, any_bit ? UINT32_MAX : mask};
    const NodeId holds = FromCondition(rule, index + 1, after);
    const NodeId fails = FromRule(rule + 1, after);
    const NodeId in = condition.sense == Sense::kIn ? holds : fails;
    const NodeId out = condition.sense == Sense::kIn ? fails : holds;
    if (any_bit) return Loaded(offset, held, graph_.Jump(BPF_JSET, mask, out, in));
    const NodeId test = BuildSearch(graph_, Split(condition.values, in, out));
    if (held == after) return test;
    return Loaded(offset, held, mask == UINT32_MAX ? test : graph_.And(mask, test));
  }

  static std::vector<Segment> Split(const std::vector<Range>& values, NodeId in, NodeId out) {
    std::vector<Segment> segments;
    std::uint64_t next = 0;
    for (const Range& range : values) {
      if (range.first > next) segments.push_back(Part(next, range.first - 1, out));
      segments.push_back(Part(range.first, range.last, in));
      next = range.last + 1;
    }
    if (next <= UINT32_MAX) segments.push_back(Part(next, UINT32_MAX, out));
    return segments;
  }

  static Segment Part(std::uint64_t first, std::uint64_t last, NodeId target) {
    return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last), target, 1};
  }

  NodeId Test64(std::size_t rule, std::size_t index, const Condition& condition) {
    const NodeId holds = FromCondition(rule, index + 1, std::nullopt);
    const NodeId fails = FromRule(rule + 1, std::nullopt);
    const NodeId in = condition.sense == Sense::kIn ? holds : fails;
    NodeId otherwise = condition.sense == Sense::kIn ? fails : holds;
    for (const Range& value : condition.values) {
      const NodeId low = TestHalf(LowHalf(condition.argument), static_cast<std::uint32_t>(condition.mask),
                                  static_cast<std::uint32_t>(value.first), in, otherwise);
      otherwise = TestHalf(HighHalf(condition.argument), static_cast<std::uint32_t>(condition.mask >> 32),
                           static_cast<std::uint32_t>(value.first >> 32), low, otherwise);
    }
    return otherwise;
  }

  NodeId TestHalf(std::uint32_t offset, std::uint32_t mask, std::uint32_t value, NodeId equal, NodeId different) {
    if (mask == 0) return equal;
    if (value == 0 && mask != UINT32_MAX) {
      return graph_.Load(offset, graph_.Jump(BPF_JSET, mask, different, equal));
    }
    const NodeId test = graph_.Jump(BPF_JEQ, value, equal, different);
    return graph_.Load(offset, mask == UINT32_MAX ? test : graph_.And(mask, test));
  }

  Graph& graph_;
  std::vector<Rule> rules_;
  Answer answer_;
};

// At load the kernel walks the filter once for each of its own numbers, to learn which calls are always allowed and
// need no filter run later. So every number weighs 1 by itself, and calls whose arguments matter weigh more: only for
// these, and for denied ones, does the filter run again.
constexpr unsigned kConditionalWeight = 4;
constexpr std::uint32_t kKernelNumbers = 470;

unsigned KernelNumbersIn(std::uint32_t first, std::uint32_t last) {
  return first >= kKernelNumbers ? 0 : std::min(last, kKernelNumbers - 1) - first + 1;
}

std::vector<Segment> SegmentsOf(Graph& graph, const CallTable& table, Arch arch, Answer answer, Others others) {
  const NodeId unknown = graph.Return(others == Others::kPass ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | ENOSYS);
  std::vector<Segment> segments;
  std::uint32_t next = 0;
  const auto fill_up_to = [&](std::uint32_t number) {
    if (number > next) segments.push_back({next, number - 1, unknown, KernelNumbersIn(next, number - 1)});
  };
  for (const auto& [number, call] : table) {
    fill_up_to(number);
    const unsigned weight = call.rules.size() == 1 ? 1 : kConditionalWeight;
    segments.push_back({number, number, CallCompiler(graph, call, answer).Compile(), weight});
    next = number + 1;
  }
  const ForeignNumbers foreign = ForeignNumbersOf(arch);
  if (foreign.present && others == Others::kRefuse) {
    fill_up_to(foreign.first);
    segments.push_back({foreign.first, foreign.last, graph.Return(SECCOMP_RET_KILL_PROCESS), 0});
    next = foreign.last + 1;
  }
  segments.push_back({next, UINT32_MAX, unknown, KernelNumbersIn(next, UINT32_MAX)});
  return segments;
}

}  // namespace

std::vector<sock_filter> CompileFilter(const CallTable& table, Arch arch, Answer answer, Others others) {
  Graph graph;
  const NodeId search = BuildSearch(graph, SegmentsOf(graph, table, arch, answer, others));
  // Numbers mean something only together with the architecture, so it is looked at first.
  const NodeId foreign =
      graph.Return(others == Others::kPass ? SECCOMP_RET_ALLOW : static_cast<std::uint32_t>(SECCOMP_RET_KILL_PROCESS));
  const NodeId numbers = graph.Load(offsetof(seccomp_data, nr), search);
  return graph.Assemble(
      graph.Load(offsetof(seccomp_data, arch), graph.Jump(BPF_JEQ, AuditArch(arch), numbers, foreign)));
}

}  // namespace belljar::seccomp
