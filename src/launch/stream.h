// launch/stream.h: moves bytes between the guest's streams and the caller, bounded and without ever blocking the loop
// that keeps the deadline.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "launch/capture.h"

namespace belljar::launch {

enum class Flow : std::uint8_t {
  kWaitForSource,
  kWaitForTarget,
  kEnded,
  kOverLimit,  ///< Streamed more than limits.output.
};

void SetNonBlocking(int fd);

/// From the guest to a capture, or to a descriptor of the caller.
class OutputPump {
 public:
  OutputPump() = default;
  /// Captures, head and tail.
  OutputPump(int source, std::uint64_t limit) : source_(source), capture_(limit) {}
  /// Streams to `target`; more than `limit` bytes are an offence. A little of both ends is kept, to explain a failure.
  /// -1: to whoever is told.
  OutputPump(int source, std::uint64_t limit, int target);
  /// `told` gets what is captured or streamed, too.
  void Tell(std::function<void(std::string_view)> told) { told_ = std::move(told); }

  /// Moves what can be moved now.
  Flow Pump();
  /// Once this is true nothing more is passed on. It has to outlive the pump.
  void StopWhen(const std::atomic<bool>& stopped) { stopped_ = &stopped; }
  int source() const { return source_; }
  int target() const { return target_; }
  Capture& capture() { return capture_; }

 private:
  Flow Flush();

  static constexpr std::size_t kChunk = 64 * 1024;
  static constexpr std::uint64_t kKept = 8 * 1024;
  int source_ = -1;
  int target_ = -1;
  std::uint64_t limit_ = 0;
  Capture capture_{0};
  bool streamed_ = false;
  std::function<void(std::string_view)> told_;
  bool target_may_block_ = false;
  const std::atomic<bool>* stopped_ = nullptr;
  std::unique_ptr<std::array<char, kChunk>> buffer_;
  std::string_view pending_;
};

/// From a text and then a descriptor of the caller to the guest.
class InputPump {
 public:
  InputPump() = default;
  /// `text` must outlive the pump; `source` may be -1.
  InputPump(std::string_view text, int source, int target);

  Flow Pump();
  /// Copies what is left of the text, which need not outlive the pump any more.
  void OwnText();
  /// As of OutputPump.
  void StopWhen(const std::atomic<bool>& stopped) { stopped_ = &stopped; }
  int source() const { return source_; }
  int target() const { return target_; }
  /// Whether all that was read is written.
  bool waits_for_source() const { return pending_.empty(); }

 private:
  static constexpr std::size_t kChunk = 64 * 1024;
  int source_ = -1;
  int target_ = -1;
  bool source_can_wait_ = false;  // Not a file, which is always ready.
  const std::atomic<bool>* stopped_ = nullptr;
  std::unique_ptr<std::array<char, kChunk>> buffer_;
  std::unique_ptr<std::string> text_;
  std::string_view pending_;
};

}  // namespace belljar::launch
