#include <belljar/result.h>

#include "base/json_writer.h"
#include "base/result_json.h"

namespace belljar {
namespace {

using base::JsonWriter;

// Statuses of `belljar run` that are not the payload's own. 124 is what timeout(1) gives; 128+n is the shell's way to
// say "signal n", used also where Belljar's limit stands for that signal: 9 KILL, 25 XFSZ, 31 SYS, 2 INT.
constexpr int kStatusTimedOut = 124;
constexpr int kStatusNotRun = 125;
constexpr int kStatusSignal = 128;
constexpr int kStatusCancelled = kStatusSignal + 2;
constexpr int kStatusKilled = kStatusSignal + 9;
constexpr int kStatusFileSize = kStatusSignal + 25;
constexpr int kStatusSyscall = kStatusSignal + 31;

void WriteOutput(JsonWriter& json, const Output& output, std::string_view name) {
  const std::string key(name);
  json.Field(key, output.data);
  if (!base::IsUtf8(output.data)) json.Key(key + "_base64").Base64(output.data);
  json.Field(key + "_bytes", output.bytes).Field(key + "_dropped", output.dropped);
}

void WriteUsage(JsonWriter& json, const Usage& usage) {
  json.Key("usage").BeginObject();
  json.Field("cpu_ms", usage.cpu_ms).Field("memory_peak_bytes", usage.memory_peak_bytes);
  json.Field("processes_peak", usage.processes_peak).Field("disk_bytes", usage.disk_bytes);
  json.EndObject();
}

void WriteDenials(JsonWriter& json, const std::vector<Denial>& denials) {
  json.Key("denials").BeginArray();
  for (const Denial& denial : denials) {
    json.BeginObject().Field("kind", denial.kind).Field("operation", denial.operation);
    json.Field("target", denial.target).Field("rule", denial.rule).Field("grant", denial.grant);
    json.Field("count", denial.count);
    if (denial.kind == "file") json.Field("resolved", denial.resolved).Field("fragment", denial.fragment);
    json.EndObject();
  }
  json.EndArray();
}

// The payload's own ending as a shell would tell it, or `otherwise` when it is not known.
int OwnStatus(const Result& result, int otherwise) {
  if (result.exit_code) return *result.exit_code;
  if (result.signal) return kStatusSignal + *result.signal;
  return otherwise;
}

}  // namespace

std::string_view Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kExited: return "exited";
    case Verdict::kSignaled: return "signaled";
    case Verdict::kTimedOut: return "timed_out";
    case Verdict::kCpuTime: return "cpu_time";
    case Verdict::kOutOfMemory: return "out_of_memory";
    case Verdict::kProcessLimit: return "process_limit";
    case Verdict::kDiskLimit: return "disk_limit";
    case Verdict::kFileSize: return "file_size";
    case Verdict::kOutputLimit: return "output_limit";
    case Verdict::kSyscall: return "syscall";
    case Verdict::kCancelled: return "cancelled";
    case Verdict::kRefused: return "refused";
    case Verdict::kFailed: return "failed";
  }
  return "invalid";
}

std::string_view Name(GuardState state) {
  switch (state) {
    case GuardState::kEnforced: return "enforced";
    case GuardState::kPartial: return "partial";
    case GuardState::kAbsent: return "absent";
    case GuardState::kOff: return "off";
  }
  return "invalid";
}

void base::WriteJson(JsonWriter& json, const Receipt& receipt) {
  json.BeginObject().Field("level", Name(receipt.level)).Field("backend", receipt.backend);
  json.Field("form", receipt.form).Field("host", receipt.host).Key("guards").BeginArray();
  for (const GuardReceipt& guard : receipt.guards) {
    json.BeginObject().Field("guard", guard.guard).Field("state", Name(guard.state));
    json.Field("by", guard.by).Field("reason", guard.reason).EndObject();
  }
  json.EndArray().Key("brought").BeginArray();
  for (const Brought& brought : receipt.brought) {
    json.BeginObject().Field("path", brought.path).Field("why", brought.why).EndObject();
  }
  json.EndArray().Key("channels").BeginArray();
  for (const ChannelReceipt& channel : receipt.channels) {
    json.BeginObject().Field("number", channel.number).Field("name", channel.name);
    json.Field("kind", channel.kind).EndObject();
  }
  json.EndArray().EndObject();
}

void base::WriteJson(JsonWriter& json, const Result& result) {
  json.BeginObject().Field("verdict", Name(result.verdict));
  json.Field("exit_code", result.exit_code).Field("signal", result.signal);
  WriteOutput(json, result.out, "stdout");
  WriteOutput(json, result.err, "stderr");
  json.Field("duration_ms", result.duration_ms);
  WriteUsage(json, result.usage);
  WriteDenials(json, result.denials);
  json.Key("receipt");
  WriteJson(json, result.receipt);
  json.Key("appeared").BeginArray();
  for (const std::string& path : result.appeared) json.String(path);
  json.EndArray()
      .Field("background", result.background)
      .Field("message", result.message)
      .Field("hint", result.hint)
      .EndObject();
}

std::string ToJson(const Result& result) {
  std::string out;
  // One allocation for the usual case; a stream of control bytes grows it, which is rare.
  out.reserve(2048 + result.out.data.size() + result.err.data.size() + 160 * result.receipt.guards.size());
  JsonWriter json(out);
  base::WriteJson(json, result);
  return out;
}

int ExitStatus(const Result& result) {
  switch (result.verdict) {
    case Verdict::kExited:
    case Verdict::kSignaled: return OwnStatus(result, kStatusNotRun);
    case Verdict::kTimedOut:
    case Verdict::kCpuTime: return kStatusTimedOut;
    case Verdict::kOutOfMemory:
    case Verdict::kProcessLimit:
    case Verdict::kOutputLimit: return kStatusKilled;
    case Verdict::kDiskLimit: {
      const int own = OwnStatus(result, 1);
      return own == 0 ? 1 : own;  // a script that hid the failure must not read as success
    }
    case Verdict::kFileSize: return kStatusFileSize;
    case Verdict::kSyscall: return kStatusSyscall;
    case Verdict::kCancelled: return kStatusCancelled;
    case Verdict::kRefused:
    case Verdict::kFailed: return kStatusNotRun;
  }
  return kStatusNotRun;
}

}  // namespace belljar
