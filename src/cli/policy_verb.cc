#include "cli/policy_verb.h"

#include <cstdio>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "base/json_writer.h"
#include "cli/policy_flags.h"
#include "policy/bind.h"
#include "policy/json_schema.h"
#include "policy/print.h"
#include "policy/profile.h"

namespace belljar::cli {
namespace {

using base::JsonWriter;

constexpr int kRight = 0;
constexpr int kWrong = 1;
constexpr int kUsage = 2;

enum class Format : std::uint8_t { kText, kJson };

template <typename Write>
void PrintJson(Write write) {
  std::string out;
  JsonWriter json(out, JsonWriter::Layout::kIndented);
  write(json);
  fmt::print("{}\n", out);
}

void WriteError(JsonWriter& json, const Error& error) {
  json.Key("error").BeginObject().Field("step", error.step).Field("message", error.message);
  json.Field("hint", error.hint).Field("text", error.Text()).EndObject();
}

int Report(const Error& error, Format format) {
  if (format == Format::kJson) {
    PrintJson([&](JsonWriter& json) {
      json.BeginObject();
      WriteError(json, error);
      json.EndObject();
    });
  } else {
    fmt::print(stderr, "belljar: {}\n", error.Text());
  }
  return kWrong;
}

enum class HostNetwork : std::uint8_t { kRefuse, kGrant };

Expected<void> CheckFile(const std::string& path, HostNetwork host_network) {
  Expected<Policy> policy = Policy::FromFile(path);
  if (!policy) return std::unexpected(policy.error());
  const bool wants_host = policy->network.mode == NetworkMode::kHost;
  if (wants_host && host_network == HostNetwork::kGrant) policy->DangerouslyShareHostNetwork();
  return policy->Check();
}

int Check(const std::vector<std::string>& paths, HostNetwork host_network, Format format) {
  std::vector<Expected<void>> results;
  int status = kRight;
  for (const std::string& path : paths) {
    results.push_back(CheckFile(path, host_network));
    if (!results.back()) status = kWrong;
  }
  if (format == Format::kJson) {
    PrintJson([&](JsonWriter& json) {
      json.BeginObject().Field("ok", status == kRight).Key("files").BeginArray();
      for (std::size_t i = 0; i < paths.size(); ++i) {
        json.BeginObject().Field("file", paths[i]).Field("ok", results[i].has_value());
        if (!results[i]) WriteError(json, results[i].error());
        json.EndObject();
      }
      json.EndArray().EndObject();
    });
    return status;
  }
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (results[i]) {
      fmt::print("{}: ok\n", paths[i]);
    } else {
      Report(results[i].error(), format);
    }
  }
  return status;
}

int Show(const PolicyFlags& flags, Format format) {
  const Expected<Policy> policy = flags.Build();
  if (!policy) return Report(policy.error(), format);
  if (const Expected<void> done = policy->Check(); !done) return Report(done.error(), format);
  if (format == Format::kJson) {
    PrintJson([&](JsonWriter& json) { policy::WriteJson(json, *policy); });
  } else {
    fmt::print("{}", policy::ToToml(*policy));
  }
  return kRight;
}

int Schema() {
  PrintJson([](JsonWriter& json) { policy::WriteJsonSchema(json); });
  return kRight;
}

int ShowProfile(const std::string& name, Format format) {
  const Expected<Policy> policy = policy::LoadProfile(name);
  if (!policy) return Report(policy.error(), format);
  if (format == Format::kJson) {
    PrintJson([&](JsonWriter& json) { policy::WriteJson(json, *policy); });
  } else {
    fmt::print("{}", policy::FindProfile(name)->text);
  }
  return kRight;
}

int ListProfiles(Format format) {
  if (format == Format::kText) {
    for (const policy::NamedProfile& profile : policy::Profiles()) {
      fmt::print("{:<12} {}\n", profile.name, profile.summary());
    }
    return kRight;
  }
  PrintJson([](JsonWriter& json) {
    json.BeginArray();
    for (const policy::NamedProfile& profile : policy::Profiles()) {
      json.BeginObject().Field("name", profile.name).Field("summary", profile.summary()).Key("policy");
      policy::WriteJson(json, Policy::Profile(profile.name));
      json.EndObject();
    }
    json.EndArray();
  });
  return kRight;
}

}  // namespace

int PolicyVerb(int argc, char** argv) {
  CLI::App app("What a run may do: check policy files, show what holds, and look up keys and profiles.",
               "belljar policy");
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  belljar policy check policy.toml\n"
      "  belljar policy show --profile tool --memory 256M > policy.toml\n"
      "  belljar policy profiles build\n"
      "  belljar policy schema > belljar.schema.json");
  bool as_json = false;
  const auto add_verb = [&](const std::string& name, const std::string& help) {
    CLI::App* verb = app.add_subcommand(name, help);
    verb->add_flag("--json", as_json, "Print JSON instead of text");
    return verb;
  };

  std::vector<std::string> paths;
  bool host_network = false;
  CLI::App* check = add_verb("check", "Say whether policy files are right, or what is wrong in which line");
  check->add_option("FILE", paths, "TOML, or JSON when the name ends in .json")->required();
  check->add_flag("--dangerously-share-host-network", host_network, "Accept network.mode = \"host\"");

  PolicyFlags flags;
  CLI::App* show = add_verb("show", "Print the policy that these flags make, every key with its value");
  flags.AddTo(*show);

  CLI::App* schema = add_verb("schema", "Print the JSON Schema of policies (draft 2020-12)");

  std::string profile;
  CLI::App* profiles = add_verb("profiles", "List the named profiles, or print one");
  profiles->add_option("NAME", profile, "The profile to print, e.g. tool");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kRight : kUsage;
  }
  const Format format = as_json ? Format::kJson : Format::kText;
  if (check->parsed()) return Check(paths, host_network ? HostNetwork::kGrant : HostNetwork::kRefuse, format);
  if (show->parsed()) return Show(flags, format);
  if (schema->parsed()) return Schema();
  if (profiles->parsed()) return profile.empty() ? ListProfiles(format) : ShowProfile(profile, format);
  return kUsage;
}

}  // namespace belljar::cli
