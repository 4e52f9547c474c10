// belljar-seccompc: compiles the syscall lists of profiles/ while Belljar is being built.
//
//   belljar-seccompc KERNEL NARROWING --tables OUT.cc [--arch x86_64|aarch64]
//   belljar-seccompc KERNEL NARROWING --markdown OUT.md
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <span>

#include "seccomp/write.h"

namespace {

using belljar::seccomp::Arch;
using belljar::seccomp::FileKind;
using belljar::seccomp::Result;
using belljar::seccomp::RuleFile;

Result<RuleFile> ReadRules(const std::string& path, FileKind kind) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return std::unexpected(fmt::format("{}: can't be read", path));
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  return belljar::seccomp::ParseRules(text, path, kind);
}

Result<std::string> Generate(std::span<const std::string> arguments) {
  if (arguments.size() != 4 && arguments.size() != 6)
    return std::unexpected("wrong arguments; see tools/seccomp/main.cc");
  const Result<RuleFile> kernel = ReadRules(arguments[0], FileKind::kKernel);
  if (!kernel) return std::unexpected(kernel.error());
  const Result<RuleFile> narrowing = ReadRules(arguments[1], FileKind::kNarrowing);
  if (!narrowing) return std::unexpected(narrowing.error());
  if (arguments[2] == "--markdown") return belljar::seccomp::WriteMarkdown(*kernel, *narrowing);
  if (arguments[2] != "--tables") return std::unexpected(fmt::format("unknown option {}", arguments[2]));
  Arch arch = belljar::seccomp::NativeArch();
  if (arguments.size() == 6) {
    const bool known = arguments[4] == "--arch" && (arguments[5] == "x86_64" || arguments[5] == "aarch64");
    if (!known) return std::unexpected("the architecture must be --arch x86_64 or --arch aarch64");
    arch = arguments[5] == "x86_64" ? Arch::kX86_64 : Arch::kAarch64;
  }
  return belljar::seccomp::WriteTables(*kernel, *narrowing, arch);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const Result<std::string> text = Generate(arguments);
  if (!text) {
    fmt::print(stderr, "{}\n", text.error());
    return 1;
  }
  std::ofstream out(arguments[3], std::ios::binary | std::ios::trunc);
  out << *text;
  out.close();
  if (!out) {
    fmt::print(stderr, "{}: can't be written\n", arguments[3]);
    return 1;
  }
  return 0;
}
