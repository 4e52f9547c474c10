#include <belljar/result.h>

#include <gtest/gtest.h>

#include "base/result_json.h"

namespace belljar {
namespace {

Result Exited(int code) {
  Result result;
  result.verdict = Verdict::kExited;
  result.exit_code = code;
  return result;
}

Result With(Verdict verdict, std::optional<int> exit_code = {}, std::optional<int> signal = {}) {
  Result result;
  result.verdict = verdict;
  result.exit_code = exit_code;
  result.signal = signal;
  return result;
}

TEST(ExitStatus, IsTheDocumentedOne) {
  EXPECT_EQ(ExitStatus(Exited(0)), 0);
  EXPECT_EQ(ExitStatus(Exited(7)), 7);
  EXPECT_EQ(ExitStatus(Exited(127)), 127);
  EXPECT_EQ(ExitStatus(With(Verdict::kSignaled, {}, 11)), 139);
  EXPECT_EQ(ExitStatus(With(Verdict::kTimedOut, {}, 9)), 124);
  EXPECT_EQ(ExitStatus(With(Verdict::kCpuTime)), 124);
  EXPECT_EQ(ExitStatus(With(Verdict::kOutOfMemory, {}, 9)), 137);
  EXPECT_EQ(ExitStatus(With(Verdict::kProcessLimit, 1)), 137);
  EXPECT_EQ(ExitStatus(With(Verdict::kOutputLimit)), 137);
  EXPECT_EQ(ExitStatus(With(Verdict::kDiskLimit, 3)), 3);
  EXPECT_EQ(ExitStatus(With(Verdict::kDiskLimit, {}, 7)), 135);
  EXPECT_EQ(ExitStatus(With(Verdict::kDiskLimit, 0)), 1);
  EXPECT_EQ(ExitStatus(With(Verdict::kFileSize, {}, 25)), 153);
  EXPECT_EQ(ExitStatus(With(Verdict::kSyscall, {}, 31)), 159);
  EXPECT_EQ(ExitStatus(With(Verdict::kCancelled)), 130);
  EXPECT_EQ(ExitStatus(With(Verdict::kRefused)), 125);
  EXPECT_EQ(ExitStatus(With(Verdict::kFailed)), 125);
  EXPECT_EQ(ExitStatus(With(Verdict::kExited)), 125) << "without a code nothing may read as success";
}

TEST(Name, OfEveryVerdict) {
  EXPECT_EQ(Name(Verdict::kExited), "exited");
  EXPECT_EQ(Name(Verdict::kOutOfMemory), "out_of_memory");
  EXPECT_EQ(Name(Verdict::kFailed), "failed");
  EXPECT_EQ(Name(GuardState::kPartial), "partial");
  EXPECT_EQ(Name(Level::kKernel), "kernel");
}

TEST(ToJson, OfAnEmptyResult) {
  EXPECT_EQ(
      ToJson(Result()),
      R"({"verdict":"failed","exit_code":null,"signal":null,"stdout":"","stdout_bytes":0,"stdout_dropped":0,)"
      R"("stderr":"","stderr_bytes":0,"stderr_dropped":0,"duration_ms":0,)"
      R"("usage":{"cpu_ms":0,"memory_peak_bytes":0,"processes_peak":0,"disk_bytes":0},"denials":[],)"
      R"("receipt":{"level":"none","backend":"","form":"","host":"","guards":[],"brought":[],"channels":[]},"appeared":[],"background":false,"message":"","hint":""})");
}

TEST(ToJson, OfAFullResult) {
  Result result = Exited(0);
  result.out = {.data = "42\n", .bytes = 3};
  result.err = {.data = "\xFF", .bytes = 9, .dropped = 8};
  result.duration_ms = 12.3456;
  result.usage = {.cpu_ms = 1, .memory_peak_bytes = 2, .processes_peak = 3, .disk_bytes = 4};
  result.denials.push_back({"syscall", "mount", "", "seccomp: kernel", "", 2});
  result.receipt = {Level::kKernel,
                    "native",
                    "namespaces",
                    "Linux",
                    {{"seccomp", GuardState::kEnforced, "filter", ""}},
                    {{"/venv", "Python"}},
                    {{3, "tools", "socket"}}};
  result.appeared = {"/workspace/.envrc"};
  EXPECT_EQ(
      ToJson(result),
      R"({"verdict":"exited","exit_code":0,"signal":null,"stdout":"42\n","stdout_bytes":3,"stdout_dropped":0,)"
      "\"stderr\":\"\xEF\xBF\xBD\","
      R"("stderr_base64":"/w==","stderr_bytes":9,"stderr_dropped":8,"duration_ms":12.346,)"
      R"("usage":{"cpu_ms":1,"memory_peak_bytes":2,"processes_peak":3,"disk_bytes":4},)"
      R"("denials":[{"kind":"syscall","operation":"mount","target":"","rule":"seccomp: kernel","grant":"","count":2}],)"
      R"("receipt":{"level":"kernel","backend":"native","form":"namespaces","host":"Linux",)"
      R"("guards":[{"guard":"seccomp","state":"enforced","by":"filter","reason":""}],)"
      R"("brought":[{"path":"/venv","why":"Python"}],"channels":[{"number":3,"name":"tools","kind":"socket"}]},"appeared":["/workspace/.envrc"],"background":false,"message":"","hint":""})");
}

TEST(WriteJson, StreamsTheSameText) {
  Result result = Exited(1);
  result.out.data = std::string(64 * 1024, '\0');
  std::string buffer;
  std::string all;
  std::size_t largest = 0;
  base::JsonWriter json(buffer, base::JsonWriter::Layout::kCompact, [&](std::string_view piece) {
    largest = std::max(largest, piece.size());
    all += piece;
  });
  base::WriteJson(json, result);
  json.Flush();
  EXPECT_EQ(all, ToJson(result));
  EXPECT_LT(largest, 2 * base::JsonWriter::kDrainAt);
}

}  // namespace
}  // namespace belljar
