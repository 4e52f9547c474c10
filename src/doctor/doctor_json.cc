#include "base/json_writer.h"
#include "doctor/doctor.h"

namespace belljar::doctor {
namespace {

using base::JsonWriter;

void WriteHost(const HostInfo& host, JsonWriter* json) {
  json->Key("host").BeginObject();
  json->Field("kernel", host.kernel).Field("arch", host.arch).Field("distribution", host.distribution);
  json->Field("user", host.user).Field("uid", host.uid).Field("container", host.container);
  json->EndObject();
}

void WriteLevel(const LevelFinding& level, JsonWriter* json) {
  json->BeginObject();
  json->Field("level", Name(level.level)).Field("state", Name(level.state));
  json->Field("reachable", level.state != ProbeState::kMissing);
  json->Field("form", level.form).Field("detail", level.detail);
  json->Key("lacks").BeginArray();
  for (const Lack& lack : level.lacks) {
    json->BeginObject()
        .Field("probe", lack.probe)
        .Field("state", Name(lack.state))
        .Field("consequence", lack.consequence)
        .Field("fix", lack.fix);
    json->EndObject();
  }
  json->EndArray().EndObject();
}

void WriteProbe(const Probe& probe, JsonWriter* json) {
  json->BeginObject();
  json->Field("name", probe.name).Field("group", Name(probe.group)).Field("state", Name(probe.state));
  json->Field("purpose", probe.purpose).Field("detail", probe.detail).Field("fix", probe.fix);
  json->EndObject();
}

void WriteTool(const Tool& tool, JsonWriter* json) {
  json->BeginObject();
  json->Field("name", tool.name).Field("path", tool.path).Field("version", tool.version);
  json->Field("state", Name(tool.state)).Field("note", tool.note);
  json->EndObject();
}

void WriteBackend(const BackendFinding& backend, JsonWriter* json) {
  json->BeginObject();
  json->Field("name", backend.name).Field("state", Name(backend.state)).Field("detail", backend.detail);
  json->Key("lacks").BeginArray();
  for (const std::string& lack : backend.lacks) json->Value(lack);
  json->EndArray().Field("fix", backend.fix).EndObject();
}

}  // namespace

std::string ToJson(const Diagnosis& diagnosis) {
  std::string out;
  JsonWriter json(out, JsonWriter::Layout::kIndented);
  json.BeginObject();
  WriteHost(diagnosis.host, &json);
  json.Key("levels").BeginArray();
  for (const LevelFinding& level : diagnosis.levels) WriteLevel(level, &json);
  json.EndArray().Key("backends").BeginArray();
  for (const BackendFinding& backend : diagnosis.backends) WriteBackend(backend, &json);
  json.EndArray().Key("probes").BeginArray();
  for (const Probe& probe : diagnosis.probes) WriteProbe(probe, &json);
  json.EndArray().Key("tools").BeginArray();
  for (const Tool& tool : diagnosis.tools) WriteTool(tool, &json);
  json.EndArray().EndObject();
  return out;
}

}  // namespace belljar::doctor
