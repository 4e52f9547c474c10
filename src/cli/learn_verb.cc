#include "cli/learn_verb.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/json_writer.h"
#include "base/printable.h"
#include "cli/policy_flags.h"
#include "cli/trace_table.h"
#include "learn/learn.h"
#include "policy/print.h"
#include "trace/grants.h"

namespace belljar::cli {
namespace {

constexpr int kBelljarFailed = 125;
constexpr int kNotLearned = 1;
constexpr std::size_t kMostInput = 16U << 20;
const CancelToken* g_cancel = nullptr;  // For the signal handler, which can be given nothing else.

void OnSignal(int) { g_cancel->Cancel(); }

struct Arguments {
  PolicyFlags policy;
  std::vector<std::string> command;
  std::string output;
  bool json = false;
  bool quiet = false;
  bool no_verify = false;
};

void AddOptions(CLI::App& app, Arguments& arguments) {
  app.add_option("-o,--policy-out", arguments.output, "Write the policy to a file instead of standard output")
      ->type_name("FILE");
  app.add_flag("--json", arguments.json, "Print what was learned as JSON, the policy included");
  app.add_flag("--no-verify", arguments.no_verify,
               "Run the example only once: no trial whether it passes under the policy, no smaller policy");
  app.add_flag("--quiet", arguments.quiet, "No progress on standard error");
  arguments.policy.AddTo(app);
  app.add_option("command", arguments.command, "The example and its arguments, behind --")->required();
  app.positionals_at_end();
  app.footer(R"(examples:
  belljar learn -o job.toml -- python3 job.py
  belljar run --policy job.toml -- python3 job.py

The example runs first with your own rights over all of the host's files, so take one that you trust. Then it runs at
level kernel under the grants that this suggests, and once without each of them, on private copies of what it writes;
what is not missed is left out. Exit status: 0 learned, 1 the example fails or does not pass under any policy found.)");
}

// Each run gets the same input, so it is read once. A terminal is none: nobody wants to type it again for each trial.
std::string ReadInput() {
  std::string text;
  if (::isatty(STDIN_FILENO) == 1) return text;
  char part[65536];
  ssize_t got = 0;
  while (text.size() < kMostInput && (got = ::read(STDIN_FILENO, part, sizeof part)) > 0) {
    text.append(part, static_cast<std::size_t>(got));
  }
  return text;
}

void WriteGrants(base::JsonWriter& json, std::string_view key, const std::vector<learn::Grant>& grants) {
  json.Key(key).BeginArray();
  for (const learn::Grant& grant : grants) {
    json.BeginObject().Field("source", grant.mount.source).Field("target", grant.mount.target);
    json.Field("access", Name(grant.mount.access)).Field("why", grant.why).Field("durable", grant.durable).EndObject();
  }
  json.EndArray();
}

std::string ToJson(const learn::Lesson& lesson, const std::vector<std::string>& argv) {
  std::string text;
  base::JsonWriter json(text);
  json.BeginObject().Field("standing", learn::Name(lesson.standing)).Field("trials", lesson.trials);
  WriteGrants(json, "grants", lesson.grants);
  WriteGrants(json, "dropped", lesson.dropped);
  const std::pair<const char*, const std::vector<std::string>*> lists[] = {
      {"withheld", &lesson.withheld}, {"addresses", &lesson.addresses}, {"notes", &lesson.notes}};
  for (const auto& [key, list] : lists) {
    json.Key(key).BeginArray();
    for (const std::string& one : *list) json.String(one);
    json.EndArray();
  }
  json.Field("toml", learn::LessonToml(lesson, argv)).Key("policy");
  policy::WriteJson(json, lesson.policy);
  json.EndObject();
  return text + "\n";
}

void PrintFailure(const learn::Lesson& lesson) {
  const bool audit = lesson.standing == learn::Standing::kAuditFailed;
  const Result& result = audit || !lesson.verified ? lesson.audit : *lesson.verified;
  std::string text =
      audit ? "belljar: the example fails already with all of the host's files in sight, so there is nothing to learn"
            : "belljar: the example does not pass at level kernel under any policy found";
  text += fmt::format(": {} {}\n", Name(result.verdict), result.exit_code ? std::to_string(*result.exit_code) : "");
  if (!result.message.empty()) text += fmt::format("belljar: {}\n", result.message);
  const std::string_view errors = result.err.data;
  text += base::Printable(errors.substr(errors.size() - std::min<std::size_t>(errors.size(), 600))) + "\n";
  text += TraceTable(result);
  if (audit) text += "belljar: make it pass without Belljar first, then learn from it\n";
  std::fputs(text.c_str(), stderr);
}

void PrintSummary(const learn::Lesson& lesson) {
  std::string text;
  if (lesson.standing == learn::Standing::kMinimal && lesson.grants.empty()) {
    text = "belljar: it passes with no grant at all: the defaults are its policy\n";
  } else {
    text = fmt::format("belljar: {} grants, {} left out as not needed, {} trials ({})\n", lesson.grants.size(),
                       lesson.dropped.size(), lesson.trials, learn::Name(lesson.standing));
  }
  for (const std::string& note : lesson.notes) text += fmt::format("belljar: note: {}\n", base::Printable(note));
  for (const std::string& one : lesson.withheld) {
    text += fmt::format("belljar: NOT GRANTED, decide yourself: {}\n", base::Printable(one));
  }
  std::fputs(text.c_str(), stderr);
}

int Write(const Arguments& arguments, const learn::Lesson& lesson) {
  const std::string toml = learn::LessonToml(lesson, arguments.command);
  if (!arguments.output.empty()) {
    std::ofstream file(arguments.output, std::ios::binary | std::ios::trunc);
    file << toml;
    file.close();
    if (!file) {
      std::fputs(fmt::format("belljar: can't write {}; choose another -o FILE\n", arguments.output).c_str(), stderr);
      return kBelljarFailed;
    }
  }
  if (arguments.json) {
    std::fputs(ToJson(lesson, arguments.command).c_str(), stdout);
  } else if (arguments.output.empty()) {
    std::fputs(toml.c_str(), stdout);
  }
  const bool good = lesson.standing == learn::Standing::kMinimal || lesson.standing == learn::Standing::kUnverified;
  return good ? 0 : kNotLearned;
}

}  // namespace

int LearnVerb(int argc, char** argv) {
  CLI::App app("Runs an example that you trust and writes the smallest policy under which it passes.", "belljar learn");
  Arguments arguments;
  AddOptions(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBelljarFailed;
  }
  const auto fail = [](const Error& error) {
    std::fputs(fmt::format("belljar: {}\n", base::Printable(error.Text())).c_str(), stderr);
    return kBelljarFailed;
  };
  const auto policy = arguments.policy.Build();
  if (!policy) return fail(policy.error());
  auto token = CancelToken::Make();
  if (!token) return fail(token.error());
  g_cancel = &*token;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, OnSignal);
  const bool quiet = arguments.quiet;
  const auto lesson =
      learn::Learn({.policy = *policy,
                    .argv = arguments.command,
                    .input = ReadInput(),
                    .verification = arguments.no_verify ? learn::Verification::kOff : learn::Verification::kOn,
                    .cancel = &*token,
                    .progress = [quiet](const std::string& line) {
                      if (!quiet) std::fputs(fmt::format("belljar: {}\n", base::Printable(line)).c_str(), stderr);
                    }});
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_DFL);
  if (!lesson) return fail(lesson.error());
  const bool audit_failed = lesson->standing == learn::Standing::kAuditFailed;
  if (audit_failed || lesson->standing == learn::Standing::kFails) PrintFailure(*lesson);
  if (audit_failed) {
    if (arguments.json) std::fputs(ToJson(*lesson, arguments.command).c_str(), stdout);
    return kNotLearned;
  }
  if (!quiet) PrintSummary(*lesson);
  return Write(arguments, *lesson);
}

}  // namespace belljar::cli
