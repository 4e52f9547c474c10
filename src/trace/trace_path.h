// trace/trace_path.h: what a guest's bytes mean: paths and socket addresses. Pure functions over byte spans, since the
// guest writes these bytes as it likes; tests/fuzz/trace_fuzz.cc feeds them anything.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace belljar::trace {

/// The C string at the start of `bytes`; nothing when it does not end in there.
std::optional<std::string_view> CString(std::span<const char> bytes);

/// A socket address as people write it: "10.0.0.1:443", "[::1]:80", "unix:/run/x.sock", "family 40"; nothing when the
/// bytes are too few to be one.
struct SocketAddress {
  std::string text;
  std::string path;        ///< Of a unix socket with a name in the file tree; as the guest gave it.
  std::uint16_t port = 0;  ///< Of an internet address.
};
std::optional<SocketAddress> DecodeAddress(std::span<const char> bytes);

/// What a link points to; nothing when the path is no link, or nobody can say.
using LinkReader = std::function<std::optional<std::string>(const std::string& path)>;

enum class LastLink : std::uint8_t { kFollow, kKeep };

/// The absolute path without ".", ".." and links. `base` is absolute. Each link that is asked for takes one from
/// `budget`; when none is left the rest is taken by its letters.
std::string ResolvePath(std::string_view base, std::string_view given, LastLink last, const LinkReader& read_link,
                        int& budget);

/// The last part of a path; empty for "/" and for names that mean a directory (".", "..").
std::string_view BaseName(std::string_view path);

}  // namespace belljar::trace
