// policy/document.h: TOML or JSON text as one small tree that remembers line numbers.
//
// Both readers give the same tree, so that one binder (bind.h) serves both. The text may be hostile: size and depth are
// bounded, nothing throws, and the tree is never deeper than kMaxDepth.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <belljar/error.h>

namespace belljar::policy {

inline constexpr std::size_t kMaxDocumentBytes = 1U << 20;
inline constexpr std::size_t kMaxDepth = 32;

enum class NodeType : std::uint8_t { kNull, kBool, kNumber, kText, kDate, kList, kTable };
std::string_view Name(NodeType type);  ///< "a number", "a list" … for error messages

struct Node {
  NodeType type = NodeType::kNull;
  unsigned line = 0;
  std::string name;         ///< The key, for a node in a table; unique there.
  std::string text;         ///< kText: the string. kNumber: plain decimal, e.g. "-1.5".
  std::vector<Node> items;  ///< kList and kTable, in the order of the text.
};

/// `name` is what errors call the text. The result is a kTable.
Expected<Node> ReadToml(std::string_view text, std::string_view name);
Expected<Node> ReadJson(std::string_view text, std::string_view name);

/// A double in the plain decimal form of Node::text; "nan" and "inf" for what has none.
std::string PlainDecimal(double value);

/// "policy.toml:3" with the rest of an error's step.
std::string StepAt(std::string_view name, unsigned line, std::string_view key);

}  // namespace belljar::policy
