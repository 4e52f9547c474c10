// belljar: runs untrusted tools and model-written code under glass. Each verb is a thin file of its own.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <new>
#include <string_view>

#include <belljar/version.h>

#include "cli/doctor_verb.h"
#include "cli/explain_verb.h"
#include "cli/learn_verb.h"
#include "cli/policy_verb.h"
#include "cli/prove_verb.h"
#include "cli/run_verb.h"

namespace {

constexpr char kHelp[] =
    R"(belljar runs untrusted commands under glass: fast, contained, explained.

usage: belljar VERB [options]

  run [options] -- COMMAND…   run a command in a fresh sandbox and say how it ended
  explain [options] -- COMMAND…
                              show the launch plan, step by step, without running anything
  learn [options] -- COMMAND…  run an example that you trust and write the smallest policy under which it passes
  doctor                      try out what this host can do, and say how to fix what it can't
  prove [FILTER…]             attack the sandbox on this machine and say what held each attack
  policy check|show|schema|profiles
                              check and print policies

try
  belljar run -- python3 -c 'print(6*7)'
  belljar run --rw . --workdir "$PWD" -- make test
  belljar run --json --profile tool --memory 256M -- ./tool

Each verb has its own --help. Exit status of run: the command's own; 128+signal; 124 out of time; 137 out of memory;
126 and 127 not executable and not found inside; 125 Belljar refused or failed.
)";

struct Verb {
  std::string_view name;
  int (*run)(int argc, char** argv);
};

constexpr Verb kVerbs[] = {
    {"run", belljar::cli::RunVerb},       {"explain", belljar::cli::ExplainVerb}, {"learn", belljar::cli::LearnVerb},
    {"doctor", belljar::cli::DoctorVerb}, {"policy", belljar::cli::PolicyVerb},   {"prove", belljar::cli::ProveVerb},
};

// SECURITY: a descriptor opened later would take the place of a closed standard stream, and the guest's output would be
// written into it.
void OpenMissingStreams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    if (::open("/dev/null", O_RDWR) != fd) ::_exit(125);
  }
}

// Without memory nothing can be told or tidied up by hand; the sandbox ends with this process, as after a kill -9.
[[noreturn]] void OutOfMemory() {
  constexpr std::string_view kMessage =
      "belljar: out of memory; raise the limit (ulimit -v, its control group) that it runs under\n";
  (void)!::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  ::_exit(125);
}

}  // namespace

int main(int argc, char** argv) {
  std::set_new_handler(OutOfMemory);
  OpenMissingStreams();
  const std::string_view name = argc > 1 ? argv[1] : "";
  for (const Verb& verb : kVerbs) {
    if (verb.name == name) return verb.run(argc - 1, argv + 1);
  }
  if (name == "--version" || name == "version") {
    std::puts("belljar " BELLJAR_VERSION);
    return 0;
  }
  if (name == "--help" || name == "-h" || name == "help") {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (name.empty()) {
    std::fputs(kHelp, stderr);
  } else {
    std::fprintf(stderr, "belljar: there is no verb '%s'; 'belljar --help' lists them\n", argv[1]);
  }
  return 125;
}
