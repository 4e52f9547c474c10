// Walls that another program makes: becoming that program, and being init behind them.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail/run_child.h"

namespace belljar::jail {
namespace {

constexpr char kInit[] = "/proc/self/fd/";
constexpr char kInside[] = "inside";

// Into `to`, which has room for it.
void WriteNumber(char* to, int number) {
  char digits[12];
  int count = 0;
  do {
    digits[count++] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  while (count > 0) *to++ = digits[--count];
  *to = '\0';
}

int ReadNumber(const char* text) {
  int number = 0;
  for (; *text >= '0' && *text <= '9' && number < 1'000'000; ++text) number = number * 10 + (*text - '0');
  return *text == '\0' ? number : -1;
}

// Gives the slots from `first` on, and the control socket, the numbers that the other program knows them by.
int PassSlots(Context& context, int first) {
  constexpr int kAbove = plan::kPassedFrom + plan::kMaxSlots;
  int lifted[plan::kMaxSlots];
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  const int out_of_the_way = null < 0 ? -1 : fcntl(null, F_DUPFD_CLOEXEC, kAbove);
  if (out_of_the_way < 0) return -1;
  for (int slot = 0; slot < plan::kMaxSlots; ++slot) {
    lifted[slot] = -1;
    const bool passed = slot == plan::kControlSlot || slot >= first;
    if (!passed || context.fds[slot] < 0) continue;
    lifted[slot] = fcntl(context.fds[slot], F_DUPFD_CLOEXEC, kAbove);
    if (lifted[slot] < 0) return -1;
  }
  context.detail = 1;
  if (syscall(SYS_close_range, 0, kAbove - 1, 0) != 0) return -1;
  context.detail = 2;
  const int words = lifted[first + plan::kBecomeWords];
  if (dup2(out_of_the_way, 0) < 0 || dup2(out_of_the_way, 1) < 0 || dup2(words, 2) < 0) return -1;
  for (int slot = 0; slot < plan::kMaxSlots; ++slot) {
    if (lifted[slot] >= 0 && dup2(lifted[slot], plan::kPassedFrom + slot) < 0) return -1;
  }
  // For the report of a failure.
  context.fds[plan::kControlSlot] = lifted[plan::kControlSlot];
  return 0;
}

}  // namespace

int Become(Context& context, const plan::Step& step) {
  const int first = step.slot;
  if (PassSlots(context, first) != 0) return -1;
  const char* program = plan::Text(context.plan, step.text);
  char arguments[12];
  char plan_number[12];
  char init[sizeof kInit + 12];
  WriteNumber(arguments, plan::kPassedFrom + first + plan::kBecomeArguments);
  WriteNumber(plan_number, plan::kPassedFrom + first + plan::kBecomePlan);
  memcpy(init, kInit, sizeof kInit);
  WriteNumber(init + sizeof kInit - 1, plan::kPassedFrom + first + plan::kBecomeInit);
  // All signals stay blocked: a Ctrl-C at the caller's terminal is the caller's to hear.
  const char* const argv[] = {program, "--args", arguments, "--", init, kInside, plan_number, nullptr};
  const char* const envp[] = {nullptr};
  context.detail = 3;
  execve(program, const_cast<char* const*>(argv), const_cast<char* const*>(envp));
  return -1;
}

int InsideNumber(int argc, char** argv) {
  return argc == 3 && strcmp(argv[1], kInside) == 0 ? ReadNumber(argv[2]) : -1;
}

void RunInside(int plan_fd, CallerStrings arguments) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  struct stat status;
  if (fstat(plan_fd, &status) != 0) _exit(125);
  void* const block =
      mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE | MAP_POPULATE, plan_fd, 0);
  if (block == MAP_FAILED) _exit(125);
  const auto& plan = *static_cast<const plan::LaunchPlan*>(block);
  std::uint32_t first = 0;
  while (first < plan.step_count && plan::Steps(plan)[first].op != plan::Op::kInside) ++first;
  Context context = {.plan = plan, .fds = {}, .caller = arguments};
  for (int& fd : context.fds) fd = -1;
  context.fds[plan::kControlSlot] = plan::kPassedFrom + plan::kControlSlot;
  // SECURITY: it came through an exec, so it would go through that of the command as well.
  if (fcntl(context.fds[plan::kControlSlot], F_SETFD, FD_CLOEXEC) != 0) _exit(125);
  context.umask = 022;
  RunSteps(context, first);
}

}  // namespace belljar::jail
