#include "launch/capture.h"

#include <gtest/gtest.h>

#include <belljar/limit.h>

namespace belljar::launch {
namespace {

TEST(Capture, KeepsAllThatFits) {
  Capture capture(10);
  capture.Append("hello");
  capture.Append("world");
  const Output output = capture.Take();
  EXPECT_EQ(output.data, "helloworld");
  EXPECT_EQ(output.bytes, 10U);
  EXPECT_EQ(output.dropped, 0U);
}

TEST(Capture, KeepsHeadAndTail) {
  Capture capture(10);
  capture.Append("0123456789abcdefghij");
  const Output output = capture.Take();
  EXPECT_EQ(output.data, "01234\n[belljar: 10 bytes dropped]\nfghij");
  EXPECT_EQ(output.bytes, 20U);
  EXPECT_EQ(output.dropped, 10U);
}

// Whatever the sizes of the pieces, the result is that of one piece.
TEST(Capture, DoesNotCareHowItIsCut) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>('a' + i % 26);
  for (const std::size_t limit : {0U, 1U, 2U, 7U, 64U, 999U, 1000U, 1001U}) {
    Capture whole(limit);
    whole.Append(text);
    const Output expected = whole.Take();
    EXPECT_LE(expected.bytes - expected.dropped, limit);
    for (const std::size_t piece : {1U, 3U, 10U, 333U}) {
      Capture cut(limit);
      for (std::size_t at = 0; at < text.size(); at += piece) cut.Append(std::string_view(text).substr(at, piece));
      const Output output = cut.Take();
      EXPECT_EQ(output.data, expected.data) << limit << " by " << piece;
      EXPECT_EQ(output.dropped, expected.dropped);
    }
  }
}

TEST(Capture, UnlimitedKeepsAll) {
  Capture capture(kUnlimited);
  for (int i = 0; i < 100; ++i) capture.Append(std::string(1000, 'x'));
  EXPECT_EQ(capture.Take().data.size(), 100'000U);
}

}  // namespace
}  // namespace belljar::launch
