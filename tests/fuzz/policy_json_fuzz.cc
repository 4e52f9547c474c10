#include <cstddef>
#include <cstdint>

#include "policy_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  belljar::fuzz::CheckRead(belljar::Policy::FromJson(text, "input"));
  return 0;
}
