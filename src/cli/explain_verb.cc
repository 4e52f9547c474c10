#include "cli/explain_verb.h"

#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <belljar/engine.h>

#include "base/printable.h"
#include "cli/channel_flags.h"
#include "cli/policy_flags.h"

namespace belljar::cli {

int ExplainVerb(int argc, char** argv) {
  constexpr int kNoPlan = 125;
  CLI::App app("Shows the launch plan in order, with what each step protects against. Nothing is run.",
               "belljar explain");
  PolicyFlags flags;
  ChannelFlags channel_flags;
  bool as_json = false;
  std::string backend = "native";
  std::vector<std::string> command;
  app.add_flag("--json", as_json, "Print the plan as JSON");
  app.add_option("--backend", backend, "Who makes the walls: native, or bwrap (docs/backends.md)")
      ->type_name("NAME")
      ->capture_default_str();
  channel_flags.AddTo(app);
  flags.AddTo(app);
  app.add_option("command", command, "The command and its arguments, behind --")->required();
  app.positionals_at_end();
  app.footer("example:\n  belljar explain --profile tool --ro ~/data:/data -- python3 /data/job.py");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kNoPlan;
  }
  const auto policy = flags.Build();
  auto channels = channel_flags.Build();
  auto engine = Engine::Open({.backend = backend, .launching = Launching::kSelf});
  Expected<std::string> text = std::unexpected(Error{});
  if (!policy) {
    text = std::unexpected(policy.error());
  } else if (!channels) {
    text = std::unexpected(channels.error());
  } else if (!engine) {
    text = std::unexpected(engine.error());
  } else {
    RunOptions options;
    options.channels = std::move(*channels);
    text = as_json ? engine->ExplainJson(*policy, command, options) : engine->Explain(*policy, command, options);
  }
  if (!text) {
    std::fputs(fmt::format("belljar: {}\n", base::Printable(text.error().Text())).c_str(), stderr);
    return kNoPlan;
  }
  std::fputs(text->c_str(), stdout);
  if (as_json) std::fputs("\n", stdout);
  return 0;
}

}  // namespace belljar::cli
