#include "policy/json_schema.h"

#include <string>

#include <fmt/format.h>

#include "policy/key.h"
#include "policy/profile.h"

namespace belljar::policy {
namespace {

using base::JsonWriter;

constexpr std::string_view kSizePattern = R"(^[0-9]+(\.[0-9]{1,9})?[KMGT](iB)?$|^[0-9]+$)";
constexpr std::string_view kDurationPattern = R"(^[0-9]+(\.[0-9]{1,9})?(ms|s|m|h)?$)";
constexpr std::string_view kAbsolutePattern = "^/";
constexpr std::string_view kVariablePattern = "^[^=\\u0000]+$";

void WriteUnlimited(JsonWriter& json) { json.BeginObject().Field("const", kUnlimitedWord).EndObject(); }

void WriteNumberType(JsonWriter& json, const Key& key) {
  json.Key("anyOf").BeginArray();
  if (key.unit == Unit::kBytes || key.unit == Unit::kDuration) {
    json.BeginObject().Field("type", "string");
    json.Field("pattern", key.unit == Unit::kBytes ? kSizePattern : kDurationPattern).EndObject();
  }
  const bool whole = key.unit == Unit::kBytes || key.unit == Unit::kCount;
  const double scale = key.unit == Unit::kDuration ? 1e9 : key.unit == Unit::kCpus ? 1e3 : 1;
  json.BeginObject().Field("type", whole ? "integer" : "number");
  if (whole) {
    json.Field("minimum", key.min).Field("maximum", key.max);
  } else {
    json.Field("minimum", static_cast<double>(key.min) / scale).Field("maximum", static_cast<double>(key.max) / scale);
  }
  json.EndObject();
  WriteUnlimited(json);
  json.EndArray();
}

void WritePathType(JsonWriter& json, std::string_view doc) {
  json.BeginObject().Field("type", "string").Field("pattern", kAbsolutePattern).Field("description", doc).EndObject();
}

void WriteMountsType(JsonWriter& json) {
  json.Field("type", "array").Key("items").BeginObject().Field("type", "object").Key("properties").BeginObject();
  json.Key("source");
  WritePathType(json, "A path of the host");
  json.Key("target");
  WritePathType(json, "Where the guest sees it; the same as source when it is not set");
  json.Key("access").BeginObject().Key("enum").BeginArray().String("ro").String("rw").EndArray();
  json.Field("default", "ro").EndObject().EndObject();
  json.Key("required").BeginArray().String("source").EndArray().Field("additionalProperties", false).EndObject();
}

void WriteListType(JsonWriter& json, const Key& key) {
  json.Field("type", "array").Key("items").BeginObject().Field("type", "string");
  if (key.name == "files.hide") json.Field("pattern", kAbsolutePattern);
  if (key.name == "environment.pass") json.Field("pattern", kVariablePattern);
  json.EndObject();
}

void WriteMapType(JsonWriter& json) {
  json.Field("type", "object").Key("propertyNames").BeginObject().Field("pattern", kVariablePattern).EndObject();
  json.Key("additionalProperties").BeginObject().Field("type", "string").EndObject();
}

void WriteChoices(JsonWriter& json, const Key& key) {
  json.Key("enum").BeginArray();
  if (key.kind == Kind::kProfile) {
    for (const NamedProfile& profile : Profiles()) json.String(profile.name);
  } else {
    for (const std::string_view choice : key.choices) json.String(choice);
  }
  json.EndArray();
}

void WriteKey(JsonWriter& json, const Key& key) {
  json.Key(key.leaf()).BeginObject().Field("description", key.doc);
  switch (key.kind) {
    case Kind::kProfile:
    case Kind::kChoice: WriteChoices(json, key); break;
    case Kind::kNumber: WriteNumberType(json, key); break;
    case Kind::kText: json.Field("type", "string").Field("pattern", kAbsolutePattern); break;
    case Kind::kTextList: WriteListType(json, key); break;
    case Kind::kMounts: WriteMountsType(json); break;
    case Kind::kTextMap: WriteMapType(json); break;
  }
  if (!key.initial.empty()) {
    // A count's default is a number in a document too.
    const bool bare = key.kind == Kind::kNumber && key.unit == Unit::kCount;
    json.Key("default");
    bare ? json.Value(std::stoull(std::string(key.initial))) : json.String(key.initial);
  }
  json.EndObject();
}

}  // namespace

void WriteJsonSchema(JsonWriter& json) {
  json.BeginObject().Field("$schema", "https://json-schema.org/draft/2020-12/schema");
  json.Field("title", "Belljar policy").Field("type", "object").Field("additionalProperties", false);
  json.Key("properties").BeginObject();
  std::string_view section;
  for (const Key& key : Keys()) {
    if (key.section() != section) {
      if (!section.empty()) json.EndObject().EndObject();
      section = key.section();
      json.Key(section).BeginObject().Field("type", "object").Field("additionalProperties", false);
      json.Key("properties").BeginObject();
    }
    WriteKey(json, key);
  }
  json.EndObject().EndObject();  // the last section
  json.EndObject().EndObject();
}

}  // namespace belljar::policy
