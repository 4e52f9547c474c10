// What a guest writes: the capture keeps head and tail of any stream, and the result is JSON whatever the bytes are.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <belljar/limit.h>

#include "launch/capture.h"
#include "result_check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using belljar::fuzz::Require;
  if (size < 3) return 0;
  const std::uint64_t limit = data[0] == 255 ? belljar::kUnlimited : data[0];
  const std::size_t chunk = 1 + data[1] % 64U;
  const std::size_t repeat = 1 + data[2] % 8U;
  const std::string_view text(reinterpret_cast<const char*>(data + 3), size - 3);
  std::string all;
  belljar::launch::Capture capture(limit);
  for (std::size_t round = 0; round < repeat; ++round) {
    for (std::size_t at = 0; at < text.size(); at += chunk) {
      capture.Append(text.substr(at, chunk));
      all += text.substr(at, chunk);
    }
  }
  belljar::Result result;
  result.out = capture.Take();
  const belljar::Output& out = result.out;
  Require(out.bytes == all.size(), "every byte is counted");
  if (all.size() <= limit) {
    Require(out.data == all && out.dropped == 0, "nothing is lost below the limit");
  } else {
    const auto head = static_cast<std::size_t>(limit - limit / 2);
    const auto tail = static_cast<std::size_t>(limit / 2);
    Require(out.dropped == all.size() - limit, "what is dropped is counted");
    Require(out.data.starts_with(std::string_view(all).substr(0, head)), "the head is kept");
    Require(out.data.ends_with(std::string_view(all).substr(all.size() - tail)), "the tail is kept");
    Require(out.data.size() < limit + 64, "memory is bounded");
  }
  result.err.data = all.substr(0, 4096);
  result.message = all.substr(0, 100);
  result.denials.push_back({.kind = "file", .operation = all.substr(0, 20), .target = all, .rule = {}, .grant = all});
  belljar::fuzz::CheckResult(result);
  return 0;
}
