#include "plan/git_text.h"

#include <algorithm>
#include <cstdint>

namespace belljar::plan {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) { return Lower(c); });
  return lower;
}

class ConfigReader {
 public:
  explicit ConfigReader(std::string_view text) : text_(text) {}

  GitConfig Read() {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);
    while (!text_.empty()) {
      const char c = text_.front();
      if (IsBlank(c) || c == '\n') {
        text_.remove_prefix(1);
      } else if (c == '[') {
        ReadSection();
      } else if (c == '#' || c == ';') {
        SkipLine();
      } else {
        ReadEntry();
      }
    }
    return std::move(config_);
  }

 private:
  void SkipLine() { text_.remove_prefix(std::min(text_.find('\n'), text_.size())); }

  // [section], [section "sub"] or [section.sub]; more may stand behind it in the same line.
  void ReadSection() {
    bool quoted = false;
    std::size_t at = 1;
    for (; at < text_.size() && text_[at] != '\n' && (quoted || text_[at] != ']'); ++at) {
      if (quoted && text_[at] == '\\') {
        ++at;
      } else if (text_[at] == '"') {
        quoted = !quoted;
      }
    }
    at = std::min(at, text_.size());
    std::string_view name = text_.substr(1, at - 1);
    section_ = Lower(name.substr(0, name.find_first_of(" \t.\"")));
    text_.remove_prefix(at < text_.size() && text_[at] == ']' ? at + 1 : at);
  }

  void ReadEntry() {
    const std::size_t end = std::min(text_.find_first_of("= \t\r\n"), text_.size());
    const std::string key = section_ + "." + Lower(text_.substr(0, end));
    text_.remove_prefix(end);
    while (!text_.empty() && IsBlank(text_.front())) text_.remove_prefix(1);
    if (text_.empty() || text_.front() != '=') return SkipLine();
    text_.remove_prefix(1);
    Take(key, ReadValue());
  }

  // Up to the end of the line, without blanks around it and comments; quoted or not, in parts.
  std::string ReadValue() {
    std::string value;
    std::size_t kept = 0;  // Without the blanks at the end, unless they are quoted.
    bool quoted = false;
    while (!text_.empty() && text_.front() != '\n') {
      char c = text_.front();
      text_.remove_prefix(1);
      if (!quoted && (c == '#' || c == ';')) {
        SkipLine();
        break;
      }
      if (c == '"') {
        quoted = !quoted;
        kept = value.size();
        continue;
      }
      if (c == '\\') {
        if (text_.starts_with("\r\n")) text_.remove_prefix(1);
        if (text_.empty()) break;
        c = text_.front();
        text_.remove_prefix(1);
        if (c == '\n') continue;
        value += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'b' ? '\b' : c;
        kept = value.size();
        continue;
      }
      if (!quoted && IsBlank(c) && value.empty()) continue;
      value += c;
      if (quoted || !IsBlank(c)) kept = value.size();
    }
    value.resize(kept);
    return value;
  }

  void Take(const std::string& key, std::string value) {
    if (value.empty()) return;
    if (key == "core.hookspath")
      config_.hooks.push_back(std::move(value));
    else if (key == "include.path" || key == "includeif.path")
      config_.included.push_back(std::move(value));
    else if (key == "core.worktree")
      config_.worktree = std::move(value);
    else if (key == "extensions.objectformat")
      config_.sha256 = Lower(value) == "sha256";
  }

  std::string_view text_;
  std::string section_;
  GitConfig config_;
};

std::uint32_t Number(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// How many bytes of the name before are not in this one, at the front of `rest`, which is then behind it.
std::size_t TakeStripped(std::string_view& rest) {
  std::size_t value = 0;
  bool more = true;
  for (int i = 0; more && !rest.empty() && i < 8; ++i) {
    const auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    value = (i == 0 ? 0 : (value + 1) << 7) + (byte & 0x7f);
    more = (byte & 0x80) != 0;
  }
  return value;
}

}  // namespace

GitConfig ParseGitConfig(std::string_view text) { return ConfigReader(text).Read(); }

std::optional<std::vector<std::string>> GitLinks(std::string_view index, bool sha256) {
  constexpr std::size_t kHeader = 12;
  constexpr std::size_t kMode = 24;
  constexpr std::size_t kFixed = 40;
  constexpr std::uint32_t kExtended = 0x4000;
  constexpr std::uint32_t kTypeMask = 0xf000;
  constexpr std::uint32_t kLink = 0xe000;
  std::vector<std::string> links;
  if (index.size() < kHeader || !index.starts_with("DIRC")) return links;
  const std::uint32_t version = Number(index, 4, 4);
  if (version < 2 || version > 4) return std::nullopt;
  const std::size_t flags_at = kFixed + (sha256 ? 32 : 20);
  std::uint32_t left = Number(index, 8, 4);
  std::string name;
  for (index.remove_prefix(kHeader); left > 0 && index.size() > flags_at + 4; --left) {
    const std::size_t head = flags_at + ((Number(index, flags_at, 2) & kExtended) != 0 && version > 2 ? 4 : 2);
    std::string_view rest = index.substr(head);
    if (version == 4) {
      name.resize(name.size() - std::min(TakeStripped(rest), name.size()));
    } else {
      name.clear();
    }
    const std::size_t end = rest.find('\0');
    if (end == std::string_view::npos) break;
    name += rest.substr(0, end);
    if ((Number(index, kMode, 4) & kTypeMask) == kLink) links.push_back(name);
    // Before version 4 there is at least one zero behind the name, and as many as make the entry one of eight bytes.
    const std::size_t length = index.size() - rest.size() + end;
    const std::size_t whole = version == 4 ? length + 1 : (length + 8) / 8 * 8;
    index.remove_prefix(std::min(whole, index.size()));
  }
  return links;
}

}  // namespace belljar::plan
