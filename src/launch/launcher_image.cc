#include "launch/launcher_image.h"

#include <cstddef>

// BELLJAR_LAUNCHER_FILE and BELLJAR_LAUNCHER_PATH come from CMakeLists.txt.
asm(".pushsection .rodata.belljar_launcher, \"a\"\n"
    ".balign 16\n"
    ".global belljar_launcher_begin\n"
    ".global belljar_launcher_end\n"
    "belljar_launcher_begin:\n"
    ".incbin \"" BELLJAR_LAUNCHER_FILE
    "\"\n"
    "belljar_launcher_end:\n"
    ".popsection\n");

extern "C" const char belljar_launcher_begin[];
extern "C" const char belljar_launcher_end[];

namespace belljar::launch {

std::string_view LauncherImage() {
  return {belljar_launcher_begin, static_cast<std::size_t>(belljar_launcher_end - belljar_launcher_begin)};
}

const char* LauncherPath() { return BELLJAR_LAUNCHER_PATH; }

}  // namespace belljar::launch
