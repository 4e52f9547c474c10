// launch/terminal.h: the caller's terminal while a run has one of its own: raw, and of the same size.
#pragma once

#include <termios.h>

#include "base/unique_fd.h"

namespace belljar::launch {

class TerminalSettings {
 public:
  TerminalSettings() = default;
  TerminalSettings(const TerminalSettings&) = delete;
  TerminalSettings& operator=(const TerminalSettings&) = delete;
  ~TerminalSettings() { End(); }

  /// `master` is the sandbox's terminal, `callers` the caller's. Does nothing where that is none.
  void Begin(int master, int callers);
  /// Gives the caller's terminal back as it was.
  void End();
  void CopySize();
  /// Readable when the caller's terminal changed its size; -1 when nobody will tell.
  int resize_fd() const { return resize_.get(); }

 private:
  int master_ = -1;
  int callers_ = -1;
  bool raw_ = false;
  termios before_{};
  base::UniqueFd resize_;
};

}  // namespace belljar::launch
