#include "trace/trace_log.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace belljar::trace {
namespace {

using plan::Use;

void Note(TraceLog& log, std::string_view operation, Use use, const std::string& path, int error) {
  if (!log.Count(operation, use, "", path, error)) log.Add(operation, use, "", path, path, error);
}

TEST(TraceLog, CountsTheSameOnce) {
  TraceLog log;
  for (int i = 0; i < 3; ++i) Note(log, "open", Use::kRead, "/a", ENOENT);
  Note(log, "open", Use::kRead, "/a", EACCES);
  Note(log, "stat", Use::kLook, "/a", ENOENT);
  ASSERT_EQ(log.accesses().size(), 3U);
  EXPECT_EQ(log.accesses()[0].count, 3U);
  EXPECT_EQ(log.accesses()[1].error, EACCES);
}

TEST(TraceLog, RelativePathsOfTwoPlacesAreTwo) {
  TraceLog log;
  for (const char* base : {"/x", "/y", "/x"}) {
    if (!log.Count("open", Use::kRead, base, "f", ENOENT)) {
      log.Add("open", Use::kRead, base, "f", std::string(base) + "/f", ENOENT);
    }
  }
  ASSERT_EQ(log.accesses().size(), 2U);
  EXPECT_EQ(log.accesses()[0].count, 2U);
}

TEST(TraceLog, ASearchThatEndsWellIsNoLack) {
  TraceLog log;
  Note(log, "open", Use::kRead, "/one/libfoo.so", ENOENT);
  Note(log, "stat", Use::kLook, "/two/libfoo.so", ENOENT);
  Note(log, "open", Use::kRead, "/one/libbar.so", ENOENT);
  Note(log, "open", Use::kCreate, "/one/libfoo.so", EACCES);
  log.NoteFound(Use::kRead, "/three/libfoo.so");
  EXPECT_TRUE(log.accesses()[0].found_elsewhere);
  EXPECT_TRUE(log.accesses()[1].found_elsewhere);
  EXPECT_FALSE(log.accesses()[2].found_elsewhere) << "another name";
  EXPECT_FALSE(log.accesses()[3].found_elsewhere) << "refused, not missing";
  Note(log, "open", Use::kRead, "/one/libfoo.so", ENOENT);
  EXPECT_FALSE(log.accesses()[0].found_elsewhere) << "asked for again";
}

TEST(TraceLog, FoundByAnotherKindOfUseDoesNotCount) {
  TraceLog log;
  Note(log, "exec", Use::kExecute, "/one/tool", ENOENT);
  log.NoteFound(Use::kRead, "/two/tool");
  EXPECT_FALSE(log.accesses()[0].found_elsewhere);
  log.NoteFound(Use::kExecute, "/two/tool");
  EXPECT_TRUE(log.accesses()[0].found_elsewhere);
}

TEST(TraceLog, IsBoundedByEntries) {
  TraceLog log({.entries = 10, .bytes = 1 << 20});
  for (int i = 0; i < 1000; ++i) Note(log, "open", Use::kRead, "/m/" + std::to_string(i), ENOENT);
  EXPECT_EQ(log.accesses().size(), 10U);
  EXPECT_EQ(log.left_out(), 990U);
  Note(log, "open", Use::kRead, "/m/3", ENOENT);
  EXPECT_EQ(log.left_out(), 990U) << "what is known goes on being counted";
}

TEST(TraceLog, IsBoundedByBytes) {
  TraceLog log({.entries = 4096, .bytes = 64 * 1024});
  for (int i = 0; i < 1000; ++i) Note(log, "open", Use::kRead, std::string(4000, 'x') + std::to_string(i), ENOENT);
  EXPECT_LT(log.accesses().size(), 10U);
  EXPECT_GT(log.left_out(), 990U);
}

TEST(IsRefusal, OnlyWhatAWallCouldSay) {
  for (const int error : {EACCES, EPERM, EROFS, ENOENT, ENETUNREACH, ECONNREFUSED}) EXPECT_TRUE(IsRefusal(error));
  for (const int error : {0, EAGAIN, EINTR, EEXIST, EINPROGRESS, ENOSYS, EFAULT}) EXPECT_FALSE(IsRefusal(error));
}

}  // namespace
}  // namespace belljar::trace
