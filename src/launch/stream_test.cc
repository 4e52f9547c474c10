#include "launch/stream.h"

#include <fcntl.h>
#include <unistd.h>
#include <gtest/gtest.h>

#include "sys/process.h"

namespace belljar::launch {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read.Reset(ends[0]);
    write.Reset(ends[1]);
  }
  base::UniqueFd read, write;
};

TEST(OutputPump, StopsAtTheLimitAndPassesWhatIsAllowed) {
  const Pipe guest;
  Pipe caller;
  SetNonBlocking(guest.read.get());
  OutputPump pump(guest.read.get(), 10, caller.write.get());
  ASSERT_EQ(::write(guest.write.get(), "0123456789abc", 13), 13);
  EXPECT_EQ(pump.Pump(), Flow::kOverLimit);
  char text[32];
  EXPECT_EQ(::read(caller.read.get(), text, sizeof text), 10);
}

TEST(OutputPump, WaitsForASlowReaderWithoutBlocking) {
  const Pipe guest;
  const Pipe caller;
  SetNonBlocking(guest.read.get());
  ::fcntl(caller.write.get(), F_SETPIPE_SZ, 4096);
  ::fcntl(guest.write.get(), F_SETPIPE_SZ, 65536);
  OutputPump pump(guest.read.get(), 1 << 20, caller.write.get());
  const std::string flood(60'000, 'x');
  ASSERT_EQ(::write(guest.write.get(), flood.data(), flood.size()), 60'000);
  EXPECT_EQ(pump.Pump(), Flow::kWaitForTarget);  // Would hang here if it blocked.
  std::string seen;
  char text[4096];
  for (int i = 0; i < 100 && seen.size() < flood.size(); ++i) {
    const ssize_t got = ::read(caller.read.get(), text, sizeof text);
    ASSERT_GT(got, 0);
    seen.append(text, static_cast<std::size_t>(got));
    (void)pump.Pump();
  }
  EXPECT_EQ(seen, flood);
}

TEST(OutputPump, EndsWhenNobodyReads) {
  const sys::BlockedSigpipe no_signal;
  const Pipe guest;
  Pipe caller;
  caller.read.Reset();
  SetNonBlocking(guest.read.get());
  OutputPump pump(guest.read.get(), 1 << 20, caller.write.get());
  ASSERT_EQ(::write(guest.write.get(), "x", 1), 1);
  EXPECT_EQ(pump.Pump(), Flow::kEnded);
}

TEST(InputPump, FeedsATextLargerThanThePipe) {
  Pipe guest;
  SetNonBlocking(guest.write.get());
  const std::string input(200'000, 'y');
  InputPump pump(input, -1, guest.write.get());
  std::size_t seen = 0;
  char text[8192];
  while (pump.Pump() == Flow::kWaitForTarget) {
    const ssize_t got = ::read(guest.read.get(), text, sizeof text);
    ASSERT_GT(got, 0);
    seen += static_cast<std::size_t>(got);
  }
  guest.write.Reset();
  for (ssize_t got = 0; (got = ::read(guest.read.get(), text, sizeof text)) > 0;) seen += static_cast<std::size_t>(got);
  EXPECT_EQ(seen, 200'000U);
}

}  // namespace
}  // namespace belljar::launch
