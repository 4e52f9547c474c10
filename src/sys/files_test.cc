#include "sys/files.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sys/processes_in_tests.h"

namespace belljar::sys {
namespace {

char StateOf(pid_t pid) {
  const std::string text = ReadSmallFile("/proc/" + std::to_string(pid) + "/stat", 4096).value_or("");
  const std::size_t close = text.rfind(')');
  return close == std::string::npos || close + 2 >= text.size() ? 'Z' : text[close + 2];
}

class Place {
 public:
  Place() {
    char path[] = "/tmp/belljar-test-XXXXXX";
    path_ = ::mkdtemp(path);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() { std::filesystem::remove_all(path_); }
  std::string At(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

TEST(Files, AreReadAndNothingElse) {
  const Place place;
  std::ofstream(place.At("file")) << "some text";
  std::filesystem::create_symlink(place.At("file"), place.At("link"));
  ASSERT_EQ(::mkfifo(place.At("pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadSmallFile(place.At("file"), 100), "some text");
  EXPECT_EQ(ReadSmallFile(place.At("link"), 100), "some text");
  EXPECT_EQ(ReadSmallFile(place.At("file"), 4), std::nullopt);
  EXPECT_EQ(ReadHead(place.At("file"), 4), "some");
  for (const char* name : {"pipe", "absent", "."}) {
    EXPECT_EQ(ReadSmallFile(place.At(name), 100), std::nullopt) << name;
    EXPECT_EQ(ReadHead(place.At(name), 100), "") << name;
  }
}

// A guest that may write where a program is looked for can put a pipe there and hold its lock: to open it is to sleep.
TEST(Files, ThatAreHeldPipesHoldNobody) {
  const Place place;
  const std::string path = place.At("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int pipe = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  int said[2];
  ASSERT_EQ(::pipe(said), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    int ends[2];
    (void)::socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    (void)!::write(said[1], "", 1);
    (void)!::splice(ends[0], nullptr, pipe, nullptr, 1, 0);
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(said[0], &byte, 1), 1);
  ASSERT_TRUE(Eventually([&] { return StateOf(holder) == 'S'; }));  // It has nothing else to wait for.
  const pid_t reader = ::fork();
  if (reader == 0) ::_exit(ReadHead(path, 100).empty() && !ReadSmallFile(path, 100) ? 0 : 1);
  int status = -1;
  EXPECT_TRUE(Eventually([&] { return ::waitpid(reader, &status, WNOHANG) == reader; }));
  EXPECT_EQ(status, 0);
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  if (status == -1) ::waitpid(reader, nullptr, 0);
  for (const int fd : {pipe, said[0], said[1]}) ::close(fd);
}

}  // namespace
}  // namespace belljar::sys
