#include "cli/run_verb.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <belljar/engine.h>

#include "base/json_writer.h"
#include "base/printable.h"
#include "base/result_json.h"
#include "cli/channel_flags.h"
#include "cli/interrupt.h"
#include "cli/policy_flags.h"
#include "cli/trace_table.h"

namespace belljar::cli {
namespace {

constexpr int kBelljarFailed = 125;

struct Arguments {
  PolicyFlags policy;
  ChannelFlags channels;
  std::string backend = "native";
  std::vector<std::string> command;
  bool json = false;
  bool terminal = false;
  bool quiet = false;
  bool trace = false;
};

void AddOptions(CLI::App& app, Arguments& arguments) {
  app.add_flag("--json", arguments.json, "Capture the output and print one result as JSON");
  app.add_flag("--tty", arguments.terminal, "Give the command a terminal of its own (shells, editors)");
  app.add_flag("--quiet", arguments.quiet, "No line on standard error about how it ended");
  app.add_flag("--trace", arguments.trace,
               "Record each file and address that was refused or missing, and say what would allow it; slower");
  app.add_option("--backend", arguments.backend, "Who makes the walls: native, or bwrap (docs/backends.md)")
      ->type_name("NAME")
      ->capture_default_str();
  arguments.channels.AddTo(app);
  arguments.policy.AddTo(app);
  app.add_option("command", arguments.command, "The command and its arguments, behind --")->required();
  app.positionals_at_end();
  app.footer(R"(examples:
  belljar run -- python3 -c 'print(6*7)'
  belljar run --profile tool --json -- ./tool < input
  belljar run --ro ~/data:/data --rw ./out:/workspace --wall 10s -- python3 /data/job.py
  belljar run --tty -- bash
  belljar run --trace -- python3 job.py      what does it lack?

No network, no file of the host but the read-only system, and limits, unless the options say otherwise.
'belljar explain' with the same options shows how each is enforced.)");
}

// False, with a message, when not all of it could be written: half a result is none.
bool PrintJson(const Result& result) {
  std::string buffer;
  base::JsonWriter json(buffer, base::JsonWriter::Layout::kCompact,
                        [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); });
  base::WriteJson(json, result);
  json.Flush();
  std::fputs("\n", stdout);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  std::fputs("belljar: the result could not be written to standard output\n", stderr);
  return false;
}

enum class Details : unsigned char { kShown, kInJson };

void PrintEnding(const Result& result, Details details) {
  std::string text;
  if (!result.message.empty()) {
    text = fmt::format("belljar: {} after {:.0f} ms: {}\n", Name(result.verdict), result.duration_ms,
                       base::Printable(result.message));
  }
  constexpr std::size_t kMostTold = 20;
  for (const std::string& path : std::span(result.appeared).first(std::min(result.appeared.size(), kMostTold))) {
    text += fmt::format("belljar: {} is new: look at it before a tool of yours executes it\n", base::Printable(path));
  }
  if (result.appeared.size() > kMostTold) {
    text += fmt::format("belljar: so are {} more, which --json lists\n", result.appeared.size() - kMostTold);
  }
  if (details == Details::kShown) text += TraceTable(result);
  if (details == Details::kShown && !result.hint.empty()) text += fmt::format("belljar: hint: {}\n", result.hint);
  std::fputs(text.c_str(), stderr);
}

Expected<Result> Run(const Arguments& arguments) {
  auto policy = arguments.policy.Build();
  if (!policy) return std::unexpected(policy.error());
  auto channels = arguments.channels.Build();
  if (!channels) return std::unexpected(channels.error());
  auto token = CancelToken::Make();
  if (!token) return std::unexpected(token.error());
  CatchSignals(*token);
  auto engine = Engine::Open({.backend = arguments.backend, .launching = Launching::kSelf});
  if (!engine) return std::unexpected(engine.error());
  RunOptions options;
  options.streams = StreamMode::kPassThrough;
  options.descriptors = kStandardStreams;
  if (arguments.terminal) options.streams = StreamMode::kTerminal;
  if (arguments.json) {
    options.streams = StreamMode::kCapture;
    options.descriptors = {.in = kStandardStreams.in};
  }
  options.channels = std::move(*channels);
  options.cancel = &*token;
  if (arguments.trace) options.trace = Trace::kRefusals;
  auto result = engine->Run(*policy, arguments.command, options);
  ReleaseSignals();
  return result;
}

}  // namespace

int RunVerb(int argc, char** argv) {
  CLI::App app("Runs a command in a fresh sandbox and says how it ended.", "belljar run");
  Arguments arguments;
  AddOptions(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBelljarFailed;
  }
  if (arguments.json && arguments.terminal) {
    std::fputs("belljar: --json captures the output and --tty shows it: use one of them\n", stderr);
    return kBelljarFailed;
  }
  auto result = Run(arguments);
  if (!result) {
    // The caller's mistake. With --json it is still one Result, so that a program has one thing to read.
    Result refused;
    refused.verdict = Verdict::kRefused;
    refused.message = result.error().Text();
    if (arguments.json) (void)PrintJson(refused);
    std::fputs(fmt::format("belljar: {}\n", base::Printable(refused.message)).c_str(), stderr);
    return kBelljarFailed;
  }
  if (arguments.json && !PrintJson(*result)) return kBelljarFailed;
  if (!arguments.quiet) PrintEnding(*result, arguments.json ? Details::kInJson : Details::kShown);
  return ExitStatus(*result);
}

}  // namespace belljar::cli
