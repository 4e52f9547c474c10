#include "seccomp/graph.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace belljar::seccomp {

NodeId Graph::Intern(const Node& node) {
  const auto [place, added] = known_.try_emplace(node, nodes_.size());
  if (added) nodes_.push_back(node);
  return place->second;
}

NodeId Graph::Return(std::uint32_t value) { return Intern({BPF_RET | BPF_K, value, 0, 0}); }

NodeId Graph::Load(std::uint32_t offset, NodeId next) { return Intern({BPF_LD | BPF_W | BPF_ABS, offset, next, 0}); }

NodeId Graph::And(std::uint32_t mask, NodeId next) { return Intern({BPF_ALU | BPF_AND | BPF_K, mask, next, 0}); }

NodeId Graph::Jump(std::uint16_t test, std::uint32_t value, NodeId yes, NodeId no) {
  if (yes == no) return yes;
  return Intern({static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), value, yes, no});
}

/// Emits from the last instruction to the first: code_[i] runs just before code_[i - 1].
class Assembler {
 public:
  explicit Assembler(const Graph& graph) : graph_(graph) {}

  std::vector<sock_filter> Run(NodeId start) {
    PutNext(start);
    std::ranges::reverse(code_);
    return code_;
  }

 private:
  static constexpr std::size_t kReach = 255;

  const Graph::Node& At(NodeId id) const { return graph_.nodes_[id]; }
  bool IsReturn(NodeId id) const { return BPF_CLASS(At(id).code) == BPF_RET; }

  /// How many instructions a jump that is emitted next would skip.
  std::size_t Distance(std::size_t place) const { return code_.size() - 1 - place; }

  std::size_t Append(std::uint16_t code, std::size_t yes, std::size_t no, std::uint32_t value) {
    code_.push_back({code, static_cast<std::uint8_t>(yes), static_cast<std::uint8_t>(no), value});
    return code_.size() - 1;
  }

  /// Makes sure that `id` is emitted somewhere.
  void Put(NodeId id) {
    if (places_.contains(id)) return;
    const Graph::Node& node = At(id);
    if (BPF_CLASS(node.code) == BPF_RET) {
      places_[id] = Append(node.code, 0, 0, node.value);
    } else if (BPF_CLASS(node.code) == BPF_JMP) {
      Put(node.no);
      Put(node.yes);
      // Bringing one nearer moves the other one step away, hence until both are in reach.
      while (Distance(places_[node.no]) > kReach || Distance(places_[node.yes]) > kReach) {
        if (Distance(places_[node.no]) > kReach) BringNear(node.no);
        if (Distance(places_[node.yes]) > kReach) BringNear(node.yes);
      }
      places_[id] = Append(node.code, Distance(places_[node.yes]), Distance(places_[node.no]), node.value);
    } else {
      PutNext(node.yes);
      places_[id] = Append(node.code, 0, 0, node.value);
    }
  }

  /// Makes sure that what is emitted next falls through to `id`.
  void PutNext(NodeId id) {
    Put(id);
    if (Distance(places_[id]) != 0) BringNear(id);
  }

  void BringNear(NodeId id) {
    if (IsReturn(id)) {
      places_[id] = Append(At(id).code, 0, 0, At(id).value);
    } else {
      places_[id] = Append(BPF_JMP | BPF_JA, 0, 0, static_cast<std::uint32_t>(Distance(places_[id])));
    }
  }

  const Graph& graph_;
  std::vector<sock_filter> code_;
  std::unordered_map<NodeId, std::size_t> places_;
};

std::vector<sock_filter> Graph::Assemble(NodeId start) const { return Assembler(*this).Run(start); }

namespace {

// What one instruction more costs at load, against one step of one unit of weight at run time. Loading is paid by every
// run and the kernel answers calls that are always allowed from a bitmap without running the filter at all, so size
// counts for much.
constexpr unsigned kInstructionCost = 46;
// Longer chains of equality tests are never worth their depth.
constexpr std::size_t kLongestChain = 3;

/// Interval dynamic programming over runs of neighbouring segments: either split them in two by one >= test, or, when
/// all but a few single values go the same way, test those few for equality.
class SearchBuilder {
 public:
  SearchBuilder(Graph& graph, const std::vector<Segment>& segments)
      : graph_(graph), segments_(segments), size_(segments.size()), best_(size_ * size_) {
    for (std::size_t length = 1; length <= size_; ++length) {
      for (std::size_t first = 0; first + length <= size_; ++first) Solve(first, first + length - 1);
    }
  }

  NodeId Build(std::size_t first, std::size_t last) {
    const Choice& choice = best_[first * size_ + last];
    if (choice.split != 0) {
      const NodeId yes = Build(choice.split, last);
      const NodeId no = Build(first, choice.split - 1);
      return graph_.Jump(BPF_JGE, segments_[choice.split].first, yes, no);
    }
    NodeId node = choice.rest;
    for (std::size_t i = first; i <= last; ++i) {
      if (segments_[i].target != choice.rest) {
        node = graph_.Jump(BPF_JEQ, segments_[i].first, segments_[i].target, node);
      }
    }
    return node;
  }

 private:
  struct Choice {
    unsigned cost = UINT32_MAX;
    unsigned weight = 0;
    std::size_t split = 0;  ///< 0: a chain of equality tests, everything else goes to `rest`.
    NodeId rest = 0;
  };

  void Solve(std::size_t first, std::size_t last) {
    Choice& best = best_[first * size_ + last];
    for (std::size_t i = first; i <= last; ++i) best.weight += segments_[i].weight;
    for (std::size_t i = first; i <= last; ++i) TryChain(first, last, segments_[i].target, best);
    for (std::size_t split = first + 1; split <= last; ++split) {
      const unsigned cost =
          kInstructionCost + best.weight + best_[first * size_ + split - 1].cost + best_[split * size_ + last].cost;
      if (cost < best.cost) best = {cost, best.weight, split, 0};
    }
  }

  void TryChain(std::size_t first, std::size_t last, NodeId rest, Choice& best) const {
    std::size_t tests = 0;
    for (std::size_t i = first; i <= last; ++i) {
      if (segments_[i].target == rest) continue;
      if (segments_[i].first != segments_[i].last || ++tests > kLongestChain) return;
    }
    const unsigned cost = static_cast<unsigned>(tests) * (kInstructionCost + best.weight);
    if (cost < best.cost) best = {cost, best.weight, 0, rest};
  }

  Graph& graph_;
  const std::vector<Segment>& segments_;
  std::size_t size_;
  std::vector<Choice> best_;
};

}  // namespace

NodeId BuildSearch(Graph& graph, const std::vector<Segment>& segments) {
  std::vector<Segment> merged;
  for (const Segment& segment : segments) {
    if (!merged.empty() && merged.back().target == segment.target) {
      merged.back().last = segment.last;
      merged.back().weight += segment.weight;
    } else {
      merged.push_back(segment);
    }
  }
  return SearchBuilder(graph, merged).Build(0, merged.size() - 1);
}

}  // namespace belljar::seccomp
