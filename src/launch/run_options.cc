#include <belljar/run.h>

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "sys/process.h"

namespace belljar {

Expected<CancelToken> CancelToken::Make() {
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return std::unexpected(sys::ErrnoError("make a cancel token", errno));
  return CancelToken(fd);
}

CancelToken::CancelToken(CancelToken&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

CancelToken& CancelToken::operator=(CancelToken&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

CancelToken::~CancelToken() {
  if (fd_ >= 0) ::close(fd_);
}

void CancelToken::Cancel() const noexcept {
  const int saved = errno;
  const std::uint64_t one = 1;
  (void)!::write(fd_, &one, sizeof one);
  errno = saved;
}

RunOptions Stdin(std::string text) {
  RunOptions options;
  options.input = std::move(text);
  return options;
}

}  // namespace belljar
