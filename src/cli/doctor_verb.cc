#include "cli/doctor_verb.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "backend/try_backends.h"
#include "doctor/doctor.h"

namespace belljar::cli {
namespace {

using doctor::ProbeState;

constexpr std::string_view kFooter = R"(
Every line is the outcome of an attempt, made as the current user in a child that ends at once; nothing on the host is
changed. Run it as the user who will run belljar: the answers differ between users.

Exit status: 0 when level kernel can be reached, 1 when it can't, 2 for a mistake in the options.

Examples:
  belljar doctor
  belljar doctor --json | jq -r '.probes[] | select(.state != "ok") | .name + ": " + .fix'
)";

/// Lays lines out for one terminal, or for a file.
class Page {
 public:
  Page() {
    const char* no_color = ::getenv("NO_COLOR");
    const bool terminal = ::isatty(STDOUT_FILENO) == 1;
    color_ = terminal && (no_color == nullptr || *no_color == '\0');
    winsize size{};
    if (terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 60) width_ = size.ws_col;
  }

  void Heading(std::string_view text) { out_ += "\n" + Paint("1", text) + "\n"; }

  void Line(ProbeState state, std::string_view name, std::string_view text) {
    constexpr std::string_view kColors[] = {"32", "33", "31"};
    out_ += "  " + Paint(kColors[static_cast<int>(state)], fmt::format("{:<8}", Name(state)));
    if (name.size() > kNameWidth) {
      out_ += std::string(name) + "\n" + std::string(kIndent, ' ');
    } else {
      out_ += fmt::format("{:<{}} ", name, kNameWidth);
    }
    Wrap(text, kIndent, kIndent);
  }
  void Why(std::string_view text) { Remark("why", text); }
  // Never wrapped: it is there to be copied.
  void Fix(std::string_view text) {
    out_ += std::string(kIndent, ' ') + Paint("36", "fix: ") + std::string(text) + "\n";
  }
  void Text(std::string_view text) { out_ += std::string(text) + "\n"; }
  std::string Bold(std::string_view text) const { return Paint("1", text); }

  const std::string& out() const { return out_; }

 private:
  static constexpr std::size_t kNameWidth = 21;
  static constexpr std::size_t kIndent = 2 + 8 + kNameWidth + 1;

  std::string Paint(std::string_view code, std::string_view text) const {
    return color_ ? fmt::format("\033[{}m{}\033[0m", code, text) : std::string(text);
  }
  void Remark(std::string_view label, std::string_view text) {
    out_ += std::string(kIndent, ' ') + Paint("36", fmt::format("{}: ", label));
    Wrap(text, kIndent + label.size() + 2, kIndent);
  }
  // Appends text that begins at column `at`, broken at blanks; further lines begin at `indent`.
  void Wrap(std::string_view text, std::size_t at, std::size_t indent) {
    while (at + text.size() > width_) {
      std::size_t cut = text.substr(0, width_ - at + 1).rfind(' ');
      if (cut == std::string_view::npos || cut == 0) cut = text.find(' ');
      if (cut == std::string_view::npos) break;
      out_ += std::string(text.substr(0, cut)) + "\n" + std::string(indent, ' ');
      text.remove_prefix(cut + 1);
      at = indent;
    }
    out_ += std::string(text) + "\n";
  }

  bool color_ = false;
  std::size_t width_ = 120;
  std::string out_;
};

std::string TitleOf(std::string_view word) {
  std::string title(word);
  if (!title.empty()) title[0] = static_cast<char>(title[0] - 'a' + 'A');
  return title;
}

void ShowLevels(const doctor::Diagnosis& diagnosis, Page* page) {
  page->Heading("Levels");
  for (const doctor::LevelFinding& level : diagnosis.levels) {
    const bool show_form = !level.form.empty() && level.form != Name(level.level);
    page->Line(level.state, Name(level.level),
               show_form ? fmt::format("form {}: {}", level.form, level.detail) : level.detail);
    // Process and container lack what kernel lacks; the list is only worth reading once.
    if (level.level != Level::kKernel) continue;
    for (const doctor::Lack& lack : level.lacks)
      page->Why(fmt::format("{} is {}: {}", lack.probe, Name(lack.state), lack.consequence));
  }
}

void ShowBackends(const doctor::Diagnosis& diagnosis, Page* page) {
  page->Heading("Backends");
  for (const doctor::BackendFinding& backend : diagnosis.backends) {
    page->Line(backend.state, backend.name, backend.detail);
    for (const std::string& lack : backend.lacks) page->Why(lack);
    if (!backend.fix.empty()) page->Fix(backend.fix);
  }
}

// A fix that several lines in a row share is said once.
void ShowGroup(const doctor::Diagnosis& diagnosis, doctor::ProbeGroup group, Page* page) {
  page->Heading(TitleOf(Name(group)));
  std::string_view last_fix;
  for (const doctor::Probe& probe : diagnosis.probes) {
    if (probe.group != group) continue;
    const bool good = probe.state == ProbeState::kOk;
    page->Line(probe.state, probe.name,
               good && !probe.detail.empty() ? fmt::format("{} ({})", probe.purpose, probe.detail) : probe.purpose);
    if (!good && !probe.detail.empty()) page->Why(probe.detail);
    if (!probe.fix.empty() && probe.fix != last_fix) page->Fix(probe.fix);
    last_fix = probe.fix;
  }
}

void ShowTools(const doctor::Diagnosis& diagnosis, Page* page) {
  page->Heading("Tools");
  std::string absent;
  for (const doctor::Tool& tool : diagnosis.tools) {
    if (tool.path.empty()) {
      absent += fmt::format("{}{}", absent.empty() ? "" : ", ", tool.name);
      continue;
    }
    page->Line(tool.state, tool.name, fmt::format("{} at {}", tool.version.empty() ? "?" : tool.version, tool.path));
    if (!tool.note.empty()) page->Why(tool.note);
  }
  if (!absent.empty()) page->Line(ProbeState::kMissing, "not on PATH", absent + " (belljar needs none of them)");
}

std::string Table(const doctor::Diagnosis& diagnosis) {
  const doctor::HostInfo& host = diagnosis.host;
  Page page;
  page.Text(fmt::format("{}: Linux {} {}, {}, as {} (uid {}){}", page.Bold("belljar doctor"), host.kernel, host.arch,
                        host.distribution, host.user, host.uid,
                        host.container.empty() ? "" : fmt::format(", in a container ({})", host.container)));
  ShowLevels(diagnosis, &page);
  ShowBackends(diagnosis, &page);
  for (const auto group : {doctor::ProbeGroup::kNamespaces, doctor::ProbeGroup::kFilters, doctor::ProbeGroup::kLimits,
                           doctor::ProbeGroup::kFiles, doctor::ProbeGroup::kNetwork, doctor::ProbeGroup::kHost}) {
    ShowGroup(diagnosis, group, &page);
  }
  ShowTools(diagnosis, &page);
  return page.out();
}

}  // namespace

int DoctorVerb(int argc, char** argv) {
  CLI::App app(
      "Says what this host can do for Belljar by trying it, which levels can be reached, and how to get the rest.",
      "belljar doctor");
  bool json = false;
  app.add_flag("--json", json, "Print one JSON document instead of a table");
  app.footer(std::string(kFooter));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  doctor::Diagnosis diagnosis = doctor::ExamineHost();
  diagnosis.backends = backend::TryBackends();
  fmt::print("{}", json ? doctor::ToJson(diagnosis) + "\n" : Table(diagnosis));
  return doctor::CanReach(diagnosis.levels, Level::kKernel) ? 0 : 1;
}

}  // namespace belljar::cli
