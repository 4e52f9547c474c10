#include "policy/document.h"

#include <cmath>

#include <fmt/format.h>

namespace belljar::policy {

std::string_view Name(NodeType type) {
  switch (type) {
    case NodeType::kNull: return "null";
    case NodeType::kBool: return "true or false";
    case NodeType::kNumber: return "a number";
    case NodeType::kText: return "a string";
    case NodeType::kDate: return "a date or time";
    case NodeType::kList: return "a list";
    case NodeType::kTable: return "a table";
  }
  return "something else";
}

std::string PlainDecimal(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{:.9f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string StepAt(std::string_view name, unsigned line, std::string_view key) {
  std::string step(name);
  if (line != 0) step += fmt::format("{}{}", step.empty() ? "line " : ":", line);
  if (!key.empty()) step += fmt::format("{}{}", step.empty() ? "" : ": ", key);
  return step;
}

}  // namespace belljar::policy
