// sys/sealed_file.h: bytes as a memory file that nobody can change any more, to be handed to another process.
#pragma once

#include <string_view>

#include <belljar/error.h>

#include "base/unique_fd.h"

namespace belljar::sys {

enum class Holds : unsigned char { kData, kProgram };

/// An Error where the kernel forbids memory files that are programs (vm.memfd_noexec), or is out of memory.
Expected<base::UniqueFd> MakeSealedFile(const char* name, std::string_view bytes, Holds what = Holds::kData);

}  // namespace belljar::sys
