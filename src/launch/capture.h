// launch/capture.h: keeps the head and the tail of a stream of any length in bounded memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <belljar/result.h>

namespace belljar::launch {

class Capture {
 public:
  /// Keeps at most `limit` bytes: the first half and the last half. kUnlimited keeps all.
  explicit Capture(std::uint64_t limit) : limit_(limit) {}

  void Append(std::string_view data);
  std::uint64_t bytes() const { return bytes_; }
  /// Head and tail with a line between them that says how much is missing. Uses the capture up.
  Output Take();

 private:
  std::uint64_t limit_;
  std::uint64_t bytes_ = 0;
  std::string head_;
  std::string tail_;         // A ring once it is full.
  std::size_t tail_at_ = 0;  // Where the ring's oldest byte is.
};

}  // namespace belljar::launch
