#include "prove/print.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json_writer.h"
#include "base/result_json.h"

namespace belljar::prove {
namespace {

constexpr Finding kFindings[] = {Finding::kContained, Finding::kEscaped, Finding::kNotPromised, Finding::kVacuous,
                                 Finding::kError};

std::string_view ColorOf(Finding finding) {
  switch (finding) {
    case Finding::kContained: return "32";
    case Finding::kEscaped: return "1;31";
    case Finding::kNotPromised:
    case Finding::kVacuous: return "33";
    case Finding::kError: return "31";
  }
  return "0";
}

std::string Painted(std::string_view text, std::string_view color, Paint paint) {
  return paint == Paint::kColors ? fmt::format("\033[{}m{}\033[0m", color, text) : std::string(text);
}

bool WorksOutside(const CaseProof& report) {
  // A case that worked inside is told as such, whatever the control said.
  return report.finding == Finding::kContained || report.finding == Finding::kEscaped ||
         report.finding == Finding::kNotPromised;
}

std::string Cut(std::string_view text, std::size_t width) {
  if (text.size() <= width) return std::string(text);
  std::size_t length = width - 1;
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) --length;  // whole characters
  return std::string(text.substr(0, length)) + "~";
}

// Why a case is not "contained", below the table: that is what a reader wants next.
std::string Reasons(const Proof& proof, Paint paint) {
  std::string text;
  for (const Finding finding : {Finding::kEscaped, Finding::kError, Finding::kNotPromised, Finding::kVacuous}) {
    if (proof.Count(finding) == 0) continue;
    text += "\n" + Painted(Name(finding), ColorOf(finding), paint);
    if (finding == Finding::kVacuous) text += " (does not work outside either, so holding it would show nothing)";
    if (finding == Finding::kNotPromised) text += " (no guard that is in force here claims to hold it)";
    text += "\n";
    for (const CaseProof& report : proof.cases) {
      if (report.finding != finding) continue;
      text += fmt::format("  {:<5} {}: {}\n", report.tried.id, report.tried.name,
                          finding == Finding::kVacuous ? report.outside : report.inside);
    }
  }
  return text;
}

std::string Totals(const Proof& proof) {
  std::string text;
  for (const Finding finding : kFindings) {
    if (finding == Finding::kNotPromised && proof.Count(finding) == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", proof.Count(finding), Name(finding));
  }
  return text;
}

}  // namespace

std::string Table(const Proof& proof, Paint paint, std::size_t width) {
  // Columns of fixed width, what it tries takes the rest.
  const std::size_t rest = width > 64 + 20 ? std::min<std::size_t>(width - 64, 60) : 20;
  std::string text =
      fmt::format("{:<5} {:<{}} {:<8} {:<20} {}\n", "case", "tries to", rest, "outside", "contained by", "verdict");
  for (const CaseProof& report : proof.cases) {
    text += fmt::format("{:<5} {:<{}} {:<8} {:<20} {}\n", report.tried.id, Cut(report.tried.tries, rest), rest,
                        WorksOutside(report) ? "works" : "-", report.guard.empty() ? "-" : report.guard,
                        Painted(Name(report.finding), ColorOf(report.finding), paint));
  }
  text += Reasons(proof, paint);
  text += fmt::format("\nlevel {}, form {}, {}, {:.1f} s\n{}\n", Name(proof.receipt.level), proof.receipt.form,
                      proof.receipt.host, proof.duration_ms / 1000, Totals(proof));
  return text;
}

std::string ToJson(const Proof& proof) {
  std::string text;
  base::JsonWriter json(text);
  json.BeginObject().Field("duration_ms", proof.duration_ms).Field("cancelled", proof.cancelled);
  json.Key("totals").BeginObject();
  for (const Finding finding : kFindings) {
    std::string key(Name(finding));
    std::ranges::replace(key, ' ', '_');
    json.Field(key, proof.Count(finding));
  }
  json.EndObject().Key("cases").BeginArray();
  for (const CaseProof& report : proof.cases) {
    std::string finding(Name(report.finding));
    std::ranges::replace(finding, ' ', '_');
    json.BeginObject().Field("id", report.tried.id).Field("name", report.tried.name).Field("tries", report.tried.tries);
    json.Key("guards").BeginArray();
    for (const Holder& holder : report.tried.guards) json.String(holder.guard);
    json.EndArray().Field("verdict", finding).Field("works_outside", WorksOutside(report));
    json.Key("contained_by");
    if (report.guard.empty()) {
      json.Null();
    } else {
      json.String(report.guard);
    }
    json.Field("outside", report.outside).Field("inside", report.inside);
    json.Field("duration_ms", report.duration_ms).EndObject();
  }
  json.EndArray().Key("receipt");
  base::WriteJson(json, proof.receipt);
  json.EndObject();
  return text;
}

std::string List(const std::vector<Case>& cases) {
  std::string text = fmt::format("{:<5} {:<28} {:<60} {}\n", "case", "name", "tries to", "guards");
  for (const Case& c : cases) {
    std::string guards;
    for (const Holder& holder : c.guards) guards += (guards.empty() ? "" : ", ") + holder.guard;
    text += fmt::format("{:<5} {:<28} {:<60} {}\n", c.id, c.name, c.tries, guards);
  }
  return text;
}

std::string ListJson(const std::vector<Case>& cases) {
  std::string text;
  base::JsonWriter json(text);
  json.BeginArray();
  for (const Case& c : cases) {
    json.BeginObject().Field("id", c.id).Field("name", c.name).Field("tries", c.tries).Key("guards").BeginArray();
    for (const Holder& holder : c.guards) json.String(holder.guard);
    json.EndArray().EndObject();
  }
  json.EndArray();
  return text;
}

}  // namespace belljar::prove
