#include "launch/look_thread.h"

#include <poll.h>
#include <gtest/gtest.h>

#include <functional>
#include <latch>

#include "sys/process.h"

namespace belljar::launch {
namespace {

class FakeLooker final : public Looker {
 public:
  explicit FakeLooker(std::function<KillReason()> look) : look_(std::move(look)) {}
  KillReason Look(std::uint64_t /*now*/) override { return look_(); }
  std::uint64_t next() const override { return 1; }  // Always.

 private:
  std::function<KillReason()> look_;
};

bool HasNews(const LookThread& thread) {
  pollfd wait{thread.news_fd(), POLLIN, 0};
  return ::poll(&wait, 1, -1) == 1;
}

TEST(LookThread, TellsWhatItFound) {
  int looks = 0;
  FakeLooker looker([&] { return ++looks < 3 ? KillReason::kNone : KillReason::kMemory; });
  LookThread thread(looker);
  ASSERT_TRUE(thread.Begin());
  EXPECT_TRUE(HasNews(thread));
  EXPECT_EQ(thread.reason(), KillReason::kMemory);
  thread.Stop();
  EXPECT_EQ(looks, 3);
}

TEST(LookThread, ShowsALookThatDoesNotComeBack) {
  std::latch begun(1);
  std::latch let_go(1);
  FakeLooker looker([&] {
    begun.count_down();
    let_go.wait();
    return KillReason::kProcesses;
  });
  LookThread thread(looker);
  EXPECT_EQ(thread.busy_since(), Looker::kNever);
  ASSERT_TRUE(thread.Begin());
  begun.wait();
  EXPECT_LE(thread.busy_since(), sys::NowNs());
  EXPECT_EQ(thread.reason(), KillReason::kNone);
  let_go.count_down();
  EXPECT_TRUE(HasNews(thread));
  thread.Stop();
  EXPECT_EQ(thread.busy_since(), Looker::kNever);
}

}  // namespace
}  // namespace belljar::launch
