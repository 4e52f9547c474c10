// tests/fuzz/require.h: how a fuzz target says that something does not hold.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace belljar::fuzz {

inline void Require(bool holds, const char* what, const std::string& detail = {}) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n%s\n", what, detail.c_str());
  std::abort();
}

}  // namespace belljar::fuzz
