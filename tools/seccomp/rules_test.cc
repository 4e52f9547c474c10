// The lists' format: what is accepted, and that each mistake stops the build with the line that holds it.
#include "seccomp/rules.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <set>

#include "seccomp/resolve.h"
#include "seccomp/write.h"

namespace belljar::seccomp {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream) << path;
  return {std::istreambuf_iterator<char>(stream), {}};
}

RuleFile MustParse(const std::string& path, FileKind kind) {
  Result<RuleFile> file = ParseRules(ReadFile(path), path, kind);
  EXPECT_TRUE(file) << file.error();
  return file ? *std::move(file) : RuleFile{};
}

std::string ErrorOf(const std::string& entry, FileKind kind = FileKind::kKernel) {
  const Result<RuleFile> file = ParseRules("[a: group]\n" + entry + "\n", "list", kind);
  return file ? std::string() : file.error();
}

TEST(Rules, ReadsAnEntryWithEverything) {
  const auto file = ParseRules(
      "# comment\n\n[G]\nsocket deny EPERM quiet if arg0:32 & ~SOCK_NONBLOCK|SOCK_CLOEXEC in "
      "{7, 1..3} and arg2:64 != 0x100000000  # why\n",
      "list", FileKind::kKernel);
  ASSERT_TRUE(file) << file.error();
  ASSERT_EQ(file->rules.size(), 1U);
  const Rule& rule = file->rules.front();
  EXPECT_EQ(rule.name, "socket");
  EXPECT_EQ(rule.line, 4);
  EXPECT_EQ(rule.group, "G");
  EXPECT_EQ(rule.reason, "why");
  EXPECT_EQ(rule.action, (Action{Verb::kDeny, EPERM, Notice::kQuiet}));
  ASSERT_EQ(rule.conditions.size(), 2U);
  EXPECT_EQ(rule.conditions[0].mask, 0xfff7f7ffU);
  EXPECT_EQ(rule.conditions[0].values, (std::vector<Range>{{1, 3}, {7, 7}}));
  EXPECT_EQ(rule.conditions[1].width, Width::k64);
  EXPECT_EQ(rule.conditions[1].sense, Sense::kNotIn);
  EXPECT_EQ(rule.conditions[1].values, (std::vector<Range>{{0x100000000U, 0x100000000U}}));
}

TEST(Rules, PretendAnswersZeroAndIsNotReported) {
  const auto file =
      ParseRules("[G]\nread pretend if arg0:32 == 4  # why\nread allow  # why\n", "list", FileKind::kKernel);
  ASSERT_TRUE(file) << file.error();
  EXPECT_EQ(file->rules.front().action, (Action{Verb::kDeny, 0, Notice::kQuiet}));
}

TEST(Rules, EveryMistakeNamesItsLine) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"read allow", "no reason"},
      {"read allow #", "no reason"},
      {"read permit # r", "not an action"},
      {"read deny # r", "not an errno"},
      {"read deny EWHAT # r", "not an errno"},
      {"read allow quiet # r", "not expected"},
      {"read allow if # r", "not an argument"},
      {"read allow if arg0 == 1 # r", "with the width"},
      {"read allow if arg6:32 == 1 # r", "not an argument"},
      {"read allow if arg0:32 < 1 # r", "not a comparison"},
      {"read allow if arg0:32 == BOGUS # r", "not a constant"},
      {"read allow if arg0:32 == 12z # r", "not a number"},
      {"read allow if arg0:32 == # r", "missing"},
      {"read allow if arg0:32 == 0x100000000 # r", "wider"},
      {"read allow if arg0:32 & 0x100000000 == 0 # r", "wider"},
      {"read allow if arg0:32 & 4 == 2 # r", "can never"},
      {"read allow if arg0:32 in 1 # r", "set in"},
      {"read allow if arg0:32 in {1, 2 # r", "expected"},
      {"read allow if arg0:32 in {1, 1..4} # r", "twice"},
      {"read allow if arg0:32 in {4..1} # r", "upside down"},
      {"read allow if arg0:64 in {1..4} # r", "not supported"},
      {"read allow if arg0:32 == 1 or arg0:32 == 2 # r", "not expected"},
      {"READ allow # r", "not the name"},
      {"read@12 allow # r", "424"},
  };
  for (const auto& [entry, expected] : mistakes) {
    const std::string error = ErrorOf(entry);
    EXPECT_TRUE(error.starts_with("list:2: ")) << entry << " → " << error;
    EXPECT_NE(error.find(expected), std::string::npos) << entry << " → " << error;
  }
  EXPECT_NE(ErrorOf("read allow # r", FileKind::kNarrowing).find("can't allow"), std::string::npos);
  EXPECT_FALSE(ParseRules("read allow # r\n", "list", FileKind::kKernel)) << "entry outside a group";
  EXPECT_FALSE(ParseRules("[title\n", "list", FileKind::kKernel));
}

std::string ResolveError(const std::string& entries) {
  const auto file = ParseRules("[g]\n" + entries, "list", FileKind::kKernel);
  EXPECT_TRUE(file) << file.error();
  const auto table = ResolveKernel(*file, Arch::kX86_64);
  return table ? std::string() : table.error();
}

TEST(Resolve, RefusesWhatCannotBeMeant) {
  EXPECT_NE(ResolveError("raed allow # r\n").find("list:2: raed"), std::string::npos);
  EXPECT_NE(ResolveError("read allow # r\nread deny EPERM # r\n").find("list:3: read: line 2 already"),
            std::string::npos);
  EXPECT_NE(ResolveError("read allow if arg0:32 == 1 # r\n").find("list:2: read: say"), std::string::npos);
  EXPECT_NE(ResolveError("pidfd_open@435 allow # r\n").find("its number is 434"), std::string::npos);
  EXPECT_NE(ResolveError("read deny EPERM if arg0:32 == 1 # r\nread deny EACCES # r\n").find("use one"),
            std::string::npos);
  EXPECT_NE(ResolveError("read allow # r\nreadv allow # r\n").find("neither allowed nor denied: write open"),
            std::string::npos);
}

// Taking any one call out of the shipped list must stop the build: nothing is allowed or denied by forgetting.
TEST(Resolve, TheShippedListIsCompleteAndEachLineIsNeeded) {
  const RuleFile kernel = MustParse("profiles/kernel.seccomp", FileKind::kKernel);
  for (const Arch arch : {Arch::kX86_64, Arch::kAarch64}) {
    const auto table = ResolveKernel(kernel, arch);
    ASSERT_TRUE(table) << table.error();
    EXPECT_GT(table->size(), 300U);
  }
  for (const char* name : {"read", "bpf", "clone", "mount", "futex_waitv"}) {
    RuleFile without = kernel;
    std::erase_if(without.rules, [&](const Rule& rule) { return rule.name == name; });
    const auto table = ResolveKernel(without, Arch::kX86_64);
    ASSERT_FALSE(table) << name;
    EXPECT_NE(table.error().find(name), std::string::npos);
  }
}

TEST(Resolve, NarrowingsResolveOnBothArchitectures) {
  const RuleFile kernel = MustParse("profiles/kernel.seccomp", FileKind::kKernel);
  const RuleFile narrowing = MustParse("profiles/narrowing.seccomp", FileKind::kNarrowing);
  for (const Arch arch : {Arch::kX86_64, Arch::kAarch64}) {
    const auto text = WriteTables(kernel, narrowing, arch);
    EXPECT_TRUE(text) << text.error();
  }
}

TEST(Documentation, IsCurrent) {
  const std::string expected = WriteMarkdown(MustParse("profiles/kernel.seccomp", FileKind::kKernel),
                                             MustParse("profiles/narrowing.seccomp", FileKind::kNarrowing));
  EXPECT_TRUE(ReadFile("docs/syscalls.md") == expected) << "docs/syscalls.md is stale; run: ninja syscalls-doc";
}

}  // namespace
}  // namespace belljar::seccomp
