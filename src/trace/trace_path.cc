#include "trace/trace_path.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include <fmt/format.h>

namespace belljar::trace {
namespace {

constexpr int kMostLinks = 40;  // As the kernel's own, MAXSYMLINKS.
constexpr std::size_t kLongestPath = 4096;
constexpr std::size_t kMostParts = 4096;

template <typename T>
std::optional<T> As(std::span<const char> bytes) {
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::optional<SocketAddress> DecodeInternet(std::span<const char> bytes, int family) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (family == AF_INET) {
    const auto address = As<sockaddr_in>(bytes);
    if (!address) return std::nullopt;
    ::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size());
    const std::uint16_t port = ntohs(address->sin_port);
    return SocketAddress{.text = fmt::format("{}:{}", text.data(), port), .path = {}, .port = port};
  }
  const auto address = As<sockaddr_in6>(bytes);
  if (!address) return std::nullopt;
  ::inet_ntop(AF_INET6, &address->sin6_addr, text.data(), text.size());
  const std::uint16_t port = ntohs(address->sin6_port);
  return SocketAddress{.text = fmt::format("[{}]:{}", text.data(), port), .path = {}, .port = port};
}

SocketAddress DecodeUnix(std::span<const char> bytes) {
  std::span<const char> name = bytes.subspan(std::min(bytes.size(), offsetof(sockaddr_un, sun_path)));
  name = name.first(std::min(name.size(), sizeof(sockaddr_un::sun_path)));
  if (name.empty()) return {.text = "unix:", .path = {}};
  if (name.front() == '\0') {  // Abstract: all of it counts, NULs as well.
    return {.text = fmt::format("unix:@{}", std::string_view(name.data() + 1, name.size() - 1)), .path = {}};
  }
  const std::string_view path(name.data(), ::strnlen(name.data(), name.size()));
  return {.text = fmt::format("unix:{}", path), .path = std::string(path)};
}

// The parts of a path that are still to be walked, the next one last.
class Parts {
 public:
  void Push(std::string_view path) {
    std::vector<std::string> fresh;
    while (!path.empty()) {
      const std::string_view part = path.substr(0, path.find('/'));
      path.remove_prefix(std::min(part.size() + 1, path.size()));
      if (!part.empty() && part != ".") fresh.emplace_back(part);
    }
    if (parts_.size() + fresh.size() > kMostParts) return;  // No kernel would walk it either.
    parts_.insert(parts_.end(), std::make_move_iterator(fresh.rbegin()), std::make_move_iterator(fresh.rend()));
  }
  bool empty() const { return parts_.empty(); }
  std::string Pop() {
    std::string part = std::move(parts_.back());
    parts_.pop_back();
    return part;
  }

 private:
  std::vector<std::string> parts_;
};

}  // namespace

std::optional<std::string_view> CString(std::span<const char> bytes) {
  const auto end = std::ranges::find(bytes, '\0');
  if (end == bytes.end()) return std::nullopt;
  return std::string_view(bytes.data(), static_cast<std::size_t>(end - bytes.begin()));
}

std::optional<SocketAddress> DecodeAddress(std::span<const char> bytes) {
  const auto family = As<sa_family_t>(bytes);
  if (!family) return std::nullopt;
  if (*family == AF_INET || *family == AF_INET6) return DecodeInternet(bytes, *family);
  if (*family == AF_UNIX) return DecodeUnix(bytes);
  return SocketAddress{.text = fmt::format("family {}", *family), .path = {}};
}

std::string ResolvePath(std::string_view base, std::string_view given, LastLink last, const LinkReader& read_link,
                        int& budget) {
  Parts parts;
  parts.Push(given);
  if (!given.starts_with('/')) parts.Push(base);
  std::string done;
  int links = 0;
  while (!parts.empty() && done.size() <= kLongestPath) {
    const std::string part = parts.Pop();
    if (part == "..") {
      done.resize(done.empty() ? 0 : done.rfind('/'));
      continue;
    }
    done.append("/").append(part);
    const bool keep = parts.empty() && last == LastLink::kKeep;
    if (keep || budget <= 0 || links >= kMostLinks) continue;
    --budget;
    const auto target = read_link(done);
    if (!target || target->empty()) continue;
    ++links;
    done.resize(target->starts_with('/') ? 0 : done.rfind('/'));
    parts.Push(*target);
  }
  if (done.size() > kLongestPath) done.resize(kLongestPath);
  return done.empty() ? "/" : done;
}

std::string_view BaseName(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  return name == "." || name == ".." ? std::string_view() : name;
}

}  // namespace belljar::trace
