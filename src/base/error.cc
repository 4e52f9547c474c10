#include <belljar/error.h>

#include <string.h>

#include <fmt/format.h>

namespace belljar {

std::string Error::Text() const {
  std::string text = step.empty() ? message : fmt::format("{}: {}", step, message);
  if (code != 0) {
    // Not strerror: that one may share a buffer between threads and speaks the locale's language, which logs can't use.
    const char* words = ::strerrordesc_np(code);
    text += words != nullptr ? fmt::format(" ({})", words) : fmt::format(" (errno {})", code);
  }
  if (!hint.empty()) text += "; " + hint;
  return text;
}

}  // namespace belljar
