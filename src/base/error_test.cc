#include <belljar/error.h>

#include <cerrno>

#include <gtest/gtest.h>

namespace belljar {
namespace {

TEST(ErrorText, IsOneLineWithWhatIsKnown) {
  EXPECT_EQ((Error{.step = "mount /proc", .message = "refused"}.Text()), "mount /proc: refused");
  EXPECT_EQ((Error{.step = "mount /proc", .message = "refused", .code = EPERM}.Text()),
            "mount /proc: refused (Operation not permitted)");
  EXPECT_EQ((Error{.step = "a", .message = "b", .hint = "do c", .code = ENOENT}.Text()),
            "a: b (No such file or directory); do c");
  EXPECT_EQ((Error{.message = "b", .hint = "do c"}.Text()), "b; do c");
}

TEST(ErrorText, NamesUnknownErrnoByNumber) {
  EXPECT_EQ((Error{.step = "a", .message = "b", .code = 9999}.Text()), "a: b (errno 9999)");
}

}  // namespace
}  // namespace belljar
