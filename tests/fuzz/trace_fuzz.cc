// What a tracer reads from a guest's memory: paths, links, socket addresses. Any bytes must give something bounded that
// is what it claims to be.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "trace/trace_log.h"
#include "trace/trace_path.h"

namespace {

using belljar::trace::BaseName;
using belljar::trace::CString;
using belljar::trace::DecodeAddress;
using belljar::trace::LastLink;
using belljar::trace::ResolvePath;
using belljar::trace::TraceLog;

void Require(bool holds) {
  if (!holds) std::abort();
}

// The bytes up to the next newline are one text each: base, path, then what links point to, in turn.
std::vector<std::string> Texts(std::span<const char> bytes) {
  std::vector<std::string> texts(1);
  for (const char c : bytes) {
    if (c == '\n') {
      texts.emplace_back();
    } else {
      texts.back() += c;
    }
  }
  texts.resize(std::max<std::size_t>(texts.size(), 2));
  return texts;
}

void Resolve(const std::vector<std::string>& texts, LastLink last) {
  std::size_t next = 0;
  int asked = 0;
  int budget = 256;
  const std::string path = ResolvePath(
      "/" + texts[0], texts[1], last,
      [&](const std::string& link) -> std::optional<std::string> {
        ++asked;
        Require(link.starts_with('/') && !link.contains("//"));
        if (texts.size() == 2) return std::nullopt;
        const std::string& target = texts[2 + next++ % (texts.size() - 2)];
        return target.empty() ? std::nullopt : std::optional(target);
      },
      budget);
  Require(asked <= 256 && budget >= 0);
  Require(path.starts_with('/') && path.size() <= 4096 + 256);
  Require(!(path + "/").contains("/../") && !(path + "/").contains("/./") && !path.contains("//"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const char> bytes(reinterpret_cast<const char*>(data), size);
  if (const auto address = DecodeAddress(bytes)) Require(!address->text.empty() && address->text.size() < 256);
  if (const auto text = CString(bytes)) Require(!text->contains('\0') && text->size() < size);
  const std::vector<std::string> texts = Texts(bytes);
  Resolve(texts, LastLink::kFollow);
  Resolve(texts, LastLink::kKeep);
  TraceLog log({.entries = 8, .bytes = 4096});
  for (const std::string& text : texts) {
    Require(BaseName(text).size() <= text.size() && !BaseName(text).contains('/'));
    const int error = text.size() % 2 == 0 ? 2 : 13;
    if (!log.Count("open", belljar::plan::Use::kRead, texts[0], text, error)) {
      log.Add("open", belljar::plan::Use::kRead, texts[0], text, text, error);
    }
    log.NoteFound(belljar::plan::Use::kLook, text);
  }
  Require(log.accesses().size() <= 8);
  return 0;
}
