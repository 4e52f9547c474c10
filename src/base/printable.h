// base/printable.h: text that somebody else chose, for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace belljar::base {

/// Control bytes, line ends included, marks that turn text around and what is not UTF-8 become \xNN: a name in it can
/// neither command the terminal nor pass for a line of Belljar's own.
std::string Printable(std::string_view text);

/// One word of a command line, quoted for a shell where it has to be.
std::string ShellWord(std::string_view word);

}  // namespace belljar::base
