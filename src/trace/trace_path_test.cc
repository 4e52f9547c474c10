#include "trace/trace_path.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

namespace belljar::trace {
namespace {

std::string Resolve(std::string_view base, std::string_view given, const std::map<std::string, std::string>& links,
                    LastLink last = LastLink::kFollow, int budget = 100) {
  return ResolvePath(
      base, given, last,
      [&](const std::string& path) -> std::optional<std::string> {
        const auto found = links.find(path);
        return found == links.end() ? std::nullopt : std::optional(found->second);
      },
      budget);
}

TEST(ResolvePath, WithoutLinks) {
  EXPECT_EQ(Resolve("/w", "a/b", {}), "/w/a/b");
  EXPECT_EQ(Resolve("/w", "/a//b/./c/", {}), "/a/b/c");
  EXPECT_EQ(Resolve("/w/x", "../../../..", {}), "/");
  EXPECT_EQ(Resolve("/", "", {}), "/");
}

TEST(ResolvePath, FollowsLinks) {
  EXPECT_EQ(Resolve("/w", "/lib/x", {{"/lib", "usr/lib"}}), "/usr/lib/x");
  EXPECT_EQ(Resolve("/w", "l", {{"/w/l", "/data/missing"}}), "/data/missing");
  EXPECT_EQ(Resolve("/w", "l/..", {{"/w/l", "/a/b"}}), "/a") << "a link's parent is its target's";
  EXPECT_EQ(Resolve("/w", "l", {{"/w/l", "/x"}}, LastLink::kKeep), "/w/l");
  EXPECT_EQ(Resolve("/w", "/l/../../../etc", {{"/l", "../../.."}}), "/etc") << "no way above the root";
}

TEST(ResolvePath, EndsWhateverTheLinksAre) {
  EXPECT_FALSE(Resolve("/", "/a", {{"/a", "a"}}).empty());
  EXPECT_FALSE(Resolve("/", "/a", {{"/a", "b"}, {"/b", "a/a/a/a"}}).empty());
  int budget = 3;
  (void)ResolvePath("/", "/a/b/c/d/e", LastLink::kFollow, [](const std::string&) { return std::nullopt; }, budget);
  EXPECT_EQ(budget, 0);
}

TEST(CString, EndsAtItsNul) {
  EXPECT_EQ(CString(std::string_view("ab\0c", 4)), "ab");
  EXPECT_EQ(CString(std::string_view("abc")), std::nullopt);
  EXPECT_EQ(CString(std::span<const char>()), std::nullopt);
}

TEST(BaseName, OfPaths) {
  EXPECT_EQ(BaseName("/a/b"), "b");
  EXPECT_EQ(BaseName("/a/b/"), "b");
  EXPECT_EQ(BaseName("b"), "b");
  EXPECT_EQ(BaseName("/"), "");
  EXPECT_EQ(BaseName("a/.."), "");
}

template <typename T>
std::optional<SocketAddress> Decode(const T& address, std::size_t size = sizeof(T)) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &address, sizeof address);
  return DecodeAddress(std::span<const char>(bytes).first(size));
}

TEST(DecodeAddress, Internet) {
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(443);
  ::inet_pton(AF_INET, "10.0.0.1", &four.sin_addr);
  EXPECT_EQ(Decode(four)->text, "10.0.0.1:443");
  EXPECT_EQ(Decode(four)->port, 443);
  EXPECT_FALSE(Decode(four, 7));
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(80);
  six.sin6_addr = in6addr_loopback;
  EXPECT_EQ(Decode(six)->text, "[::1]:80");
}

TEST(DecodeAddress, UnixAndOthers) {
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  std::strcpy(local.sun_path, "/run/x");
  EXPECT_EQ(Decode(local)->text, "unix:/run/x");
  EXPECT_EQ(Decode(local)->path, "/run/x");
  std::memset(local.sun_path, 'y', sizeof local.sun_path);
  EXPECT_EQ(Decode(local)->path.size(), sizeof local.sun_path) << "a name without a NUL ends with its room";
  EXPECT_EQ(Decode(local, 2)->text, "unix:");
  local.sun_path[0] = '\0';
  EXPECT_EQ(Decode(local, 5)->text, "unix:@yy");
  sockaddr other{};
  other.sa_family = 40;
  EXPECT_EQ(Decode(other)->text, "family 40");
  EXPECT_FALSE(Decode(other, 1));
  EXPECT_FALSE(Decode(other, 0));
}

}  // namespace
}  // namespace belljar::trace
