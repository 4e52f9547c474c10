#include "sys/sealed_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "sys/process.h"

namespace belljar::sys {
namespace {

constexpr unsigned kExecutable = 0x0010U;  // MFD_EXEC, Linux 6.3; older kernels don't know it and don't need it.

}  // namespace

Expected<base::UniqueFd> MakeSealedFile(const char* name, std::string_view bytes, Holds what) {
  const auto failed = [&](const char* doing) { return std::unexpected(ErrnoError(std::string(doing) + name, errno)); };
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  base::UniqueFd file(::memfd_create(name, what == Holds::kProgram ? kFlags | kExecutable : kFlags));
  if (!file.valid() && errno == EINVAL) file.Reset(::memfd_create(name, kFlags));
  if (!file.valid()) return failed("make the memory file ");
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return failed("fill the memory file ");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
    return failed("seal the memory file ");
  }
  return file;
}

}  // namespace belljar::sys
