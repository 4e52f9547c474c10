#include "launch/capture.h"

#include <algorithm>

#include <fmt/format.h>

#include <belljar/limit.h>

namespace belljar::launch {

void Capture::Append(std::string_view data) {
  bytes_ += data.size();
  const std::uint64_t head_limit = limit_ == kUnlimited ? kUnlimited : limit_ - limit_ / 2;
  if (head_.size() < head_limit) {
    const auto take = static_cast<std::size_t>(std::min<std::uint64_t>(head_limit - head_.size(), data.size()));
    head_.append(data.substr(0, take));
    data.remove_prefix(take);
  }
  const auto ring = static_cast<std::size_t>(limit_ / 2);
  if (data.size() > ring) data.remove_prefix(data.size() - ring);
  if (tail_.size() < ring) {
    const std::size_t take = std::min(ring - tail_.size(), data.size());
    tail_.append(data.substr(0, take));
    data.remove_prefix(take);
  }
  while (!data.empty()) {
    const std::size_t take = std::min(ring - tail_at_, data.size());
    std::copy_n(data.begin(), take, tail_.begin() + static_cast<std::ptrdiff_t>(tail_at_));
    tail_at_ = (tail_at_ + take) % ring;
    data.remove_prefix(take);
  }
}

Output Capture::Take() {
  Output output{.data = std::move(head_), .bytes = bytes_, .dropped = 0};
  output.dropped = bytes_ - output.data.size() - tail_.size();
  if (output.dropped > 0) output.data += fmt::format("\n[belljar: {} bytes dropped]\n", output.dropped);
  output.data.append(tail_, tail_at_);
  output.data.append(tail_, 0, tail_at_);
  return output;
}

}  // namespace belljar::launch
