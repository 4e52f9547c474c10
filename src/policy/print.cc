#include "policy/print.h"

#include <iterator>

#include <fmt/format.h>

#include "policy/key.h"

namespace belljar::policy {
namespace {

using base::JsonWriter;

// JSON's escapes are all valid in a basic string of TOML, so one writer serves both.
std::string TomlString(std::string_view text) {
  std::string out;
  JsonWriter(out).String(text);
  return out;
}

// Counts and CPUs are numbers in a document, sizes and durations are strings with a unit.
bool IsBareNumber(const Key& key, std::uint64_t value) {
  return key.kind == Kind::kNumber && value != kUnlimited && (key.unit == Unit::kCount || key.unit == Unit::kCpus);
}

std::optional<std::uint64_t> EffectiveValue(const Key& key, const Policy& policy) {
  if (key.name == "min_level") return static_cast<std::uint64_t>(policy.MinLevel());
  return key.get(policy);
}

std::string TomlList(const std::vector<std::string>& list) {
  std::string out = "[";
  for (const std::string& item : list) out += (out.size() > 1 ? ", " : "") + TomlString(item);
  return out + "]";
}

std::string TomlMounts(const std::vector<Mount>& mounts) {
  if (mounts.empty()) return "[]";
  std::string out = "[\n";
  for (const Mount& mount : mounts) {
    fmt::format_to(std::back_inserter(out), "  {{source = {}, target = {}, access = {}}},\n", TomlString(mount.source),
                   TomlString(mount.target), TomlString(Name(mount.access)));
  }
  return out + "]";
}

std::string TomlMap(const std::vector<std::pair<std::string, std::string>>& map) {
  std::string out = "{";
  for (const auto& [name, value] : map) {
    out += fmt::format("{}{} = {}", out.size() > 1 ? ", " : "", TomlString(name), TomlString(value));
  }
  return out + "}";
}

// Empty when the key is unset.
std::string TomlValue(const Key& key, Policy& policy) {
  switch (key.kind) {
    case Kind::kProfile: return TomlString(policy.profile);
    case Kind::kText: return key.text(policy).empty() ? std::string() : TomlString(key.text(policy));
    case Kind::kTextList: return TomlList(key.list(policy));
    case Kind::kMounts: return TomlMounts(policy.files.mounts);
    case Kind::kTextMap: return TomlMap(policy.environment.set);
    case Kind::kChoice:
    case Kind::kNumber: break;
  }
  const std::optional<std::uint64_t> value = EffectiveValue(key, policy);
  if (!value) return {};
  const std::string text = FormatValue(key, *value);
  return IsBareNumber(key, *value) ? text : TomlString(text);
}

void WriteMounts(JsonWriter& json, const std::vector<Mount>& mounts) {
  json.BeginArray();
  for (const Mount& mount : mounts) {
    json.BeginObject().Field("source", mount.source).Field("target", mount.target);
    json.Field("access", Name(mount.access)).EndObject();
  }
  json.EndArray();
}

void WriteNumber(JsonWriter& json, const Key& key, std::uint64_t value) {
  if (!IsBareNumber(key, value)) {
    json.String(FormatValue(key, value));
  } else if (key.unit == Unit::kCpus) {
    json.Number(static_cast<double>(value) / 1000);
  } else {
    json.Number(value);
  }
}

void WriteValue(JsonWriter& json, const Key& key, Policy& policy) {
  if (key.kind == Kind::kChoice || key.kind == Kind::kNumber) {
    const std::optional<std::uint64_t> value = EffectiveValue(key, policy);
    if (!value) return;
    json.Key(key.leaf());
    WriteNumber(json, key, *value);
    return;
  }
  if (key.kind == Kind::kText && key.text(policy).empty()) return;
  json.Key(key.leaf());
  if (key.kind == Kind::kMounts) {
    WriteMounts(json, policy.files.mounts);
  } else if (key.kind == Kind::kTextMap) {
    json.BeginObject();
    for (const auto& [name, text] : policy.environment.set) json.Field(name, text);
    json.EndObject();
  } else if (key.kind == Kind::kTextList) {
    json.BeginArray();
    for (const std::string& item : key.list(policy)) json.String(item);
    json.EndArray();
  } else {
    json.String(key.text(policy));
  }
}

}  // namespace

std::string ToToml(const Policy& policy, Comments comments) {
  Policy copy = policy;  // the table's accessors give writable references
  std::string out;
  std::string_view section;
  for (const Key& key : Keys()) {
    if (key.section() != section) {
      section = key.section();
      fmt::format_to(std::back_inserter(out), "\n[{}]\n", section);
    }
    const std::string value = TomlValue(key, copy);
    std::string line =
        value.empty() ? fmt::format("# {} is not set", key.leaf()) : fmt::format("{} = {}", key.leaf(), value);
    if (comments == Comments::kDocs) {
      // After a value of several lines the comment would stand at its end, so it goes before.
      const bool several = line.find('\n') != std::string::npos;
      line = several ? fmt::format("# {}\n{}", key.doc, line) : fmt::format("{:<28} # {}", line, key.doc);
    }
    out += line + "\n";
  }
  return out;
}

void WriteJson(JsonWriter& json, const Policy& policy) {
  Policy copy = policy;
  std::string_view section;
  json.BeginObject();
  for (const Key& key : Keys()) {
    if (key.section() != section) {
      if (!section.empty()) json.EndObject();
      section = key.section();
      json.Key(section).BeginObject();
    }
    WriteValue(json, key, copy);
  }
  if (!section.empty()) json.EndObject();
  json.EndObject();
}

}  // namespace belljar::policy
