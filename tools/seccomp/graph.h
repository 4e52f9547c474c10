// seccomp/graph.h: a filter as a graph of decisions, and the graph as BPF.
//
// Nodes are values: asking twice for the same decision gives the same node, so equal tails are emitted once. BPF only
// jumps forwards and conditional jumps reach 255 instructions; Assemble() works from the last instruction to the first,
// so that every target's place is known, and puts a nearer return or a long jump where one is out of reach.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <map>
#include <vector>

namespace belljar::seccomp {

using NodeId = std::size_t;

class Graph {
 public:
  NodeId Return(std::uint32_t value);
  /// Loads the 32-bit word of seccomp_data at `offset` and goes on.
  NodeId Load(std::uint32_t offset, NodeId next);
  NodeId And(std::uint32_t mask, NodeId next);
  /// `test` is BPF_JEQ, BPF_JGE or BPF_JSET against `value`.
  NodeId Jump(std::uint16_t test, std::uint32_t value, NodeId yes, NodeId no);

  std::vector<sock_filter> Assemble(NodeId start) const;

 private:
  friend class Assembler;

  struct Node {
    std::uint16_t code = 0;
    std::uint32_t value = 0;
    NodeId yes = 0;  ///< Also the next node of Load and And.
    NodeId no = 0;

    auto operator<=>(const Node&) const = default;
  };

  NodeId Intern(const Node& node);

  std::vector<Node> nodes_;
  std::map<Node, NodeId> known_;
};

/// What happens to the numbers first … last.
struct Segment {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  NodeId target = 0;
  unsigned weight = 1;  ///< How much a fast answer is worth.
};

/// The cheapest tree of comparisons of the loaded word over segments that are sorted and cover all 32-bit values.
NodeId BuildSearch(Graph& graph, const std::vector<Segment>& segments);

}  // namespace belljar::seccomp
