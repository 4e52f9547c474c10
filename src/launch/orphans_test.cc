#include "launch/orphans.h"

#include <sys/wait.h>
#include <unistd.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <thread>

namespace belljar::launch {
namespace {

// Runs the body in a process of its own, which has one thread and no children; its answer is whether that was right.
template <typename Body>
void InAProgram(Body body) {
  const pid_t program = ::fork();
  if (program == 0) ::_exit(body() ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(program, &status, 0), program);
  EXPECT_EQ(status, 0);
}

// An init that is killed while what its guest has detached lives on. Returns when it is gone.
void LoseAnInit() {
  const pid_t init = ::fork();
  if (init == 0) {
    if (::fork() == 0) {
      ::setsid();
      for (;;) ::pause();
    }
    ::raise(SIGKILL);
  }
  ::waitpid(init, nullptr, 0);
}

bool HasChildren() { return ::waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD; }

TEST(Orphans, AreEnded) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer has a thread of its own, and whoever has several adopts no orphans";
#endif
  InAProgram([] {
    std::optional<Orphans> orphans(std::in_place);
    orphans->Adopt();
    LoseAnInit();
    const bool adopted = HasChildren();
    orphans.reset();
    return adopted && !HasChildren() && sys::AdoptOrphans(sys::Reaper::kOthers) == sys::Reaper::kOthers;
  });
}

TEST(Orphans, ChildrenOfTheHostProgramAreNotTouched) {
  InAProgram([] {
    const pid_t own = ::fork();
    if (own == 0) {
      for (;;) ::pause();
    }
    {
      Orphans orphans;
      orphans.Adopt();
    }
    const bool lives = ::waitpid(own, nullptr, WNOHANG) == 0;
    ::kill(own, SIGKILL);
    return lives;
  });
}

TEST(Orphans, AreNotAdoptedByAProgramWithThreads) {
  InAProgram([] {
    bool adopts = true;
    std::thread([&] {
      Orphans orphans;
      orphans.Adopt();
      adopts = sys::AdoptOrphans(sys::Reaper::kOthers) == sys::Reaper::kSelf;
    }).join();
    return !adopts;
  });
}

}  // namespace
}  // namespace belljar::launch
