#include "cli/prove_verb.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/printable.h"
#include "cli/interrupt.h"
#include "prove/print.h"
#include "prove/prover.h"
#include "prove/stage.h"
#ifdef BELLJAR_TEST_SEAMS
#include "plan/without.h"
#include "prove/matrix.h"
#endif

namespace belljar::cli {
namespace {

constexpr int kEscaped = 1;
constexpr int kWrongUse = 2;
constexpr int kInterrupted = 130;
constexpr char kSecretVariable[] = "BELLJAR_PROVE_SECRET";

constexpr std::string_view kFooter = R"(
Each case is a small hostile program. It runs outside first, as the control: in a throw-away child, bounded in time and
size, on loopback only, where it may work and yet hurts nothing. Then it runs inside. Verdicts:

  contained     works outside, refused inside, and nothing on the host was touched
  escaped       worked inside, although a guard of the receipt should have held it
  not promised  worked inside, and the level that was reached claims no guard against it (see SECURITY.md)
  vacuous       does not work outside either (not in this kernel, or this user may not do it), so it shows nothing
  error         could not be tried

FILTER is a case (B26), a part (A files, B kernel surface, C identity, D resources, F supervisor) or a piece of a name.
Limits of the policy are lowered to small ones, so that attacks on them stay cheap. Run it as the user who will run
belljar: the answers differ between users, and as root fewer cases are vacuous.

Exit status: 0 nothing escaped, 1 something did, 2 a mistake in the options or a case that could not be tried.

Examples:
  belljar prove
  belljar prove --level process C
  belljar prove --policy policy.toml fork memory
  belljar prove --live
  belljar prove --backend bwrap
  belljar prove --json | jq -r '.cases[] | select(.verdict != "contained") | .id + " " + .verdict'
)";

struct Arguments {
  std::string level;
  std::string policy_file;
  std::string backend = "native";
  std::vector<std::string> filters;
  bool json = false;
  bool list = false;
  bool live = false;
#ifdef BELLJAR_TEST_SEAMS
  std::string without;
  bool matrix = false;
#endif
};

// The secret has to be where a caller's secrets are: among the variables that the program was started with.
std::string SecretFromStart(char** argv) {
  if (const char* secret = std::getenv(kSecretVariable); secret != nullptr) return secret;
  const std::string made = prove::MakeSecret();
  ::setenv(kSecretVariable, made.c_str(), 1);
  std::vector<char*> again;
  char program[] = "belljar";
  again.push_back(program);
  for (char** argument = argv; *argument != nullptr; ++argument) again.push_back(*argument);
  again.push_back(nullptr);
  ::execv("/proc/self/exe", again.data());
  return made;  // Without /proc the cases about it show less, and say so.
}

Expected<Policy> ReadPolicy(const Arguments& arguments) {
  Policy policy;
  if (!arguments.policy_file.empty()) {
    auto read = Policy::FromFile(arguments.policy_file);
    if (!read) return read;
    policy = *std::move(read);
  }
  if (!arguments.level.empty()) {
    policy.AtLevel(arguments.level);
    policy.min_level.reset();
  }
  if (const std::optional<Error>& mistake = policy.error(); mistake) return std::unexpected(*mistake);
  if (auto good = policy.Check(); !good) return std::unexpected(good.error());
  return policy;
}

void ShowProgress(const prove::Progress& progress) {
  std::fputs(
      fmt::format("\r{} of {} cases, {} escaped \033[K", progress.done, progress.total, progress.escaped).c_str(),
      stderr);
}

std::size_t TerminalWidth() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 60 ? size.ws_col : 120;
}

int Fail(const Error& error) {
  std::fputs(fmt::format("belljar: {}\n", base::Printable(error.Text())).c_str(), stderr);
  return kWrongUse;
}

int StatusOf(const prove::Proof& proof) {
  if (proof.Count(prove::Finding::kEscaped) > 0) return kEscaped;
  if (proof.cancelled) return kInterrupted;
  return proof.Count(prove::Finding::kError) > 0 ? kWrongUse : 0;
}

#ifdef BELLJAR_TEST_SEAMS
int Matrix(prove::Prover& prover, const std::vector<prove::Case>& cases) {
  const auto page = prove::GuardMatrix(
      prover, cases, [](const std::string& now) { std::fputs(fmt::format("{}\n", now).c_str(), stderr); });
  if (!page) return Fail(page.error());
  fmt::print("{}", *page);
  return 0;
}
#endif

int Prove(const Arguments& arguments, char** argv) {
  auto catalog = prove::Catalog::Load();
  if (!catalog) return Fail(catalog.error());
  const auto cases = catalog->Matching(arguments.filters);
  if (!cases) return Fail(cases.error());
  if (arguments.list) {
    fmt::print("{}{}", arguments.json ? prove::ListJson(*cases) : prove::List(*cases), arguments.json ? "\n" : "");
    return 0;
  }
  auto policy = ReadPolicy(arguments);
  if (!policy) return Fail(policy.error());
  const std::string secret = SecretFromStart(argv);
  auto token = CancelToken::Make();
  if (!token) return Fail(token.error());
  CatchSignals(*token);
  const prove::Company company = arguments.live ? prove::Company::kBystander : prove::Company::kNone;
  prove::Prover prover(
      *std::move(catalog), secret,
      {.policy = *std::move(policy), .company = company, .backend = arguments.backend, .cancel = &*token});
  const bool shows = ::isatty(STDERR_FILENO) == 1;
#ifdef BELLJAR_TEST_SEAMS
  if (auto known = plan::LeaveOut(arguments.without); !known) return Fail(known.error());
  if (arguments.matrix) return Matrix(prover, *cases);
#endif
  const auto proof = prover.Run(*cases, [&](const prove::Progress& progress) {
    if (shows) ShowProgress(progress);
  });
  if (shows) std::fputs("\r\033[K", stderr);
  if (!proof) return Fail(proof.error());
  const char* no_color = std::getenv("NO_COLOR");
  const bool colors = ::isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
  fmt::print("{}", arguments.json
                       ? prove::ToJson(*proof) + "\n"
                       : prove::Table(*proof, colors ? prove::Paint::kColors : prove::Paint::kPlain, TerminalWidth()));
  if (proof->cancelled) std::fputs("belljar: interrupted; these are the cases that were tried\n", stderr);
  return StatusOf(*proof);
}

}  // namespace

int ProveVerb(int argc, char** argv) {
  CLI::App app("Attacks the sandbox on this machine with a corpus of hostile programs and says what held each of them.",
               "belljar prove");
  Arguments arguments;
  app.add_option("--level", arguments.level, "The level to prove: process or kernel (default: the policy's, or kernel)")
      ->type_name("LEVEL");
  app.add_option("--policy", arguments.policy_file, "Prove this policy, a TOML or .json file")->type_name("FILE");
  app.add_option("--backend", arguments.backend, "Which backend to prove: native, or bwrap")->type_name("NAME");
  app.add_flag("--live", arguments.live,
               "Run each case in a live sandbox, beside another command, which has to stay unhurt");
  app.add_flag("--json", arguments.json, "Print one JSON document instead of a table");
  app.add_flag("--list", arguments.list, "Name the cases without running them");
#ifdef BELLJAR_TEST_SEAMS
  app.add_option("--without", arguments.without, "Test builds only: leave one guard out, to see what it alone held")
      ->type_name("GUARD");
  app.add_flag("--matrix", arguments.matrix, "Test builds only: do that for every guard; prints docs/guards.md");
#endif
  app.add_option("filter", arguments.filters, "Cases to run: an id, a part's letter, or a piece of a name");
  app.footer(std::string(kFooter));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kWrongUse;
  }
  return Prove(arguments, argv);
}

}  // namespace belljar::cli
