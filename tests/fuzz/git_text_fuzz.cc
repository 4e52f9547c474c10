// git's own files, as a guest may have left them for whoever looks next.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "plan/git_text.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using belljar::fuzz::Require;
  namespace plan = belljar::plan;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const plan::GitConfig config = plan::ParseGitConfig(text);
  for (const std::string& hooks : config.hooks)
    Require(!hooks.empty() && hooks.size() < size, "a value is of the text");
  for (const bool sha256 : {false, true}) {
    const auto links = plan::GitLinks(text, sha256);
    if (links) Require(links->size() * 62 <= size, "an entry has 62 bytes at least");
  }
  return 0;
}
