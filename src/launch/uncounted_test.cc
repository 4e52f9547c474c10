// Who may hide, and for how long. As somebody who may not look into every process, which root may.
#include "launch/uncounted.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sys/files.h"
#include "sys/pipe.h"
#include "sys/proc_text.h"
#include "sys/processes_in_tests.h"

namespace belljar::launch {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

[[noreturn]] void Hide(int tell) {
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  const pid_t own = ::getpid();
  if (::write(tell, &own, sizeof own) != sizeof own) std::_Exit(1);
  for (;;) ::pause();
}

std::uint64_t Started(pid_t pid) {
  return sys::StartTicks(sys::ReadSmallFile(fmt::format("/proc/{}/stat", pid), 4096).value_or(""));
}

// An init with one steward, which has one child that hides.
class Tree {
 public:
  enum class Child { kAtOnce, kLater };
  explicit Tree(Child when) : when_(when), told_(sys::MakePipe("make a pipe").value()) { Grow(); }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree() { Fell(); }
  // The same with other processes, but for init.
  void Regrow() {
    Fell();
    Grow();
  }
  pid_t init() const { return ::getpid(); }
  pid_t child() const { return child_; }

 private:
  void Grow() {
    do {
      Fell();
      steward_ = ::fork();
      if (steward_ == 0) {
        if (when_ == Child::kLater) ::usleep(100'000);
        if (::fork() == 0) Hide(told_.write.get());
        for (;;) ::pause();
      }
      if (::read(told_.read.get(), &child_, sizeof child_) != sizeof child_) std::abort();
      // Until no load was in the way.
    } while (when_ == Child::kAtOnce && Started(child_) > Started(steward_) + 1);
  }
  void Fell() {
    if (steward_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::kill(steward_, SIGKILL);
    ::waitpid(steward_, nullptr, 0);
    steward_ = 0;
  }
  Child when_;
  sys::Pipe told_;
  pid_t steward_ = 0, child_ = 0;
};

// Which sweep, of ten and one a second, said of those before it that somebody hides; 0: none.
int Sweeps(UncountedWatch& watch, Tree& tree, bool regrows) {
  watch.SetInit(tree.init());
  watch.SetMemoryLimit(1U << 30);
  (void)watch.Look(kSecond);
  for (int sweep = 1; sweep <= 10; ++sweep) {
    if (regrows) tree.Regrow();
    const std::uint64_t now = kSecond + static_cast<std::uint64_t>(sweep) * (kSecond + kSecond / 10);
    const auto seen = watch.Look(now);
    if (!seen) return -1;
    if (seen->hidden) return sweep;
  }
  return 0;
}

// In a process of its own, as a user: what it returns has to fit an exit status.
template <typename Body>
int AsUser(Body body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    constexpr uid_t kNobody = 65'534;
    if (::geteuid() == 0 && ::setresuid(kNobody, kNobody, kNobody) != 0) std::_Exit(99);
    ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    std::_Exit(body());
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int SweepsOf(Tree::Child child, bool regrows, bool allowed) {
  return AsUser([&] {
    Tree tree(child);
    UncountedWatch watch(Above::kStewards, Sockets::kShared);
    if (allowed) watch.AllowToHide([&](pid_t pid) { return pid == tree.child(); });
    return Sweeps(watch, tree, regrows);
  });
}

TEST(Uncounted, WhoHidesForLongIsFound) { EXPECT_EQ(SweepsOf(Tree::Child::kAtOnce, false, false), 4); }

TEST(Uncounted, CommandsBeforeTheirExecDoNotHide) { EXPECT_EQ(SweepsOf(Tree::Child::kAtOnce, true, false), 0); }

TEST(Uncounted, WhoCameLaterIsNoCommandHoweverOftenItIsAnother) {
  EXPECT_EQ(SweepsOf(Tree::Child::kLater, true, false), 4);
}

TEST(Uncounted, WhoWaitsMayHide) { EXPECT_EQ(SweepsOf(Tree::Child::kAtOnce, false, true), 0); }

}  // namespace
}  // namespace belljar::launch
