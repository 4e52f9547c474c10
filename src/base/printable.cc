#include "base/printable.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json_writer.h"

namespace belljar::base {
std::string Printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = base::Utf8Length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(1, length));
    if (length == 0 || TerminalObeys(character)) {
      for (const char c : character) result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      result += character;
    }
    text.remove_prefix(character.size());
  }
  return result;
}

std::string ShellWord(std::string_view word) {
  const bool safe = std::ranges::all_of(word, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-+:@%,=").contains(c);
  });
  if (safe) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace belljar::base
