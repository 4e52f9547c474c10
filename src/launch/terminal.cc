#include "launch/terminal.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace belljar::launch {

void TerminalSettings::Begin(int master, int callers) {
  master_ = master;
  callers_ = callers;
  CopySize();
  if (::tcgetattr(callers_, &before_) != 0) return;
  termios raw = before_;
  ::cfmakeraw(&raw);
  raw_ = ::tcsetattr(callers_, TCSANOW, &raw) == 0;
  sigset_t resize;
  ::sigemptyset(&resize);
  ::sigaddset(&resize, SIGWINCH);
  ::pthread_sigmask(SIG_BLOCK, &resize, nullptr);
  resize_.Reset(::signalfd(-1, &resize, SFD_CLOEXEC | SFD_NONBLOCK));
}

void TerminalSettings::CopySize() {
  signalfd_siginfo info{};
  while (resize_.valid() && ::read(resize_.get(), &info, sizeof info) > 0) {
  }
  winsize size{};
  if (::ioctl(callers_, TIOCGWINSZ, &size) == 0) ::ioctl(master_, TIOCSWINSZ, &size);
}

void TerminalSettings::End() {
  if (!raw_) return;
  raw_ = false;
  ::tcsetattr(callers_, TCSANOW, &before_);  // Not after what is still to be shown: nobody may look any more.
  sigset_t resize;
  ::sigemptyset(&resize);
  ::sigaddset(&resize, SIGWINCH);
  ::pthread_sigmask(SIG_UNBLOCK, &resize, nullptr);
}

}  // namespace belljar::launch
