#include "plan/git_places.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/git_text.h"
#include "sys/files.h"

namespace belljar::plan {
namespace {

constexpr std::size_t kMostEntries = 10'000;    // Of one directory.
constexpr std::size_t kMostPlaces = 16'384;     // Visited, all kinds together.
constexpr std::size_t kMostNames = 262'144;     // Listed, all directories together.
constexpr std::size_t kMostBytes = 256U << 20;  // Read, all files together: an index has some 100 bytes for a file.
constexpr std::size_t kSmallFile = 1U << 20;

// What a repository has in it that is none itself.
constexpr std::array<std::string_view, 7> kOwnParts = {"objects", "refs",    "logs",     "hooks",
                                                       "info",    "modules", "worktrees"};

class Walk {
 public:
  Walk(const std::string& top, const std::string& home) : top_(top), home_(home) {}

  GitPlaces Find() {
    Go(Kind::kWorkTree, top_);
    if (Is(top_ + "/HEAD") && Is(top_ + "/objects") && Is(top_ + "/refs")) Go(Kind::kRepository, top_);
    for (const char* own : {"/.gitconfig", "/.config/git/config"}) Go(Kind::kConfig, top_ + own, top_);
    while (!waiting_.empty()) {
      const Step step = std::move(waiting_.back());
      waiting_.pop_back();
      switch (step.kind) {
        case Kind::kWorkTree: WorkTree(step.path); break;
        case Kind::kRepository: Repository(step.path, step.from); break;
        case Kind::kModules: Modules(step.path, false); break;
        case Kind::kPartsOfRepository: Modules(step.path, true); break;
        case Kind::kConfig: (void)Config(step.path, *step.from); break;
      }
    }
    return std::move(places_);
  }

 private:
  enum class Kind : std::uint8_t { kWorkTree, kRepository, kModules, kPartsOfRepository, kConfig };
  // All paths are the host's, normal, and may lie outside: what is there is read, as it may lead back in.
  using Tree = std::optional<std::string>;
  struct Step {
    Kind kind;
    std::string path;
    Tree from;  // The working tree of a repository; what core.hooksPath of a configuration is seen from.
  };

  static bool Is(const std::string& path) { return sys::LinkStatus(path).kind != sys::FileKind::kAbsent; }

  // By its name, and by what it really is: a link on the way may be anybody's.
  void Note(std::set<std::string>& to, const std::string& path) {
    const auto add = [&](const std::string& place) {
      if (!sys::IsWithin(place, top_)) return;
      to.insert(place.size() == top_.size() ? "" : place.substr(top_ == "/" ? 1 : top_.size() + 1));
    };
    add(path);
    if (const auto real = sys::RealPath(path)) add(*real);
  }

  // Later, as one may lead to the next without end; once each.
  void Go(Kind kind, const std::string& path, Tree from = std::nullopt) {
    if (seen_.size() >= kMostPlaces) return Note(places_.unsearched, path);
    if (seen_.emplace(kind, path).second) waiting_.push_back({kind, path, std::move(from)});
  }

  std::optional<std::string> Read(const std::string& path, std::size_t most) {
    if (sys::Status(path).kind == sys::FileKind::kAbsent) return std::nullopt;
    auto text = sys::ReadSmallFile(path, std::min(most, kMostBytes - read_));
    if (!text) {
      Note(places_.unsearched, path);
      return std::nullopt;
    }
    read_ += text->size();
    return text;
  }

  // A path as a file of git's has it, in its first line or as a value.
  std::string Lead(std::string_view text, const std::string& from) const {
    if (text.starts_with("~/")) return sys::Normalize(home_ + std::string(text.substr(1)), "/");
    return sys::Normalize(text, from);
  }
  static std::string_view Line(std::string_view text) {
    text = text.substr(0, text.find('\n'));
    while (!text.empty() && (text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
    return text;
  }
  static std::string Parent(const std::string& path) { return sys::Normalize("..", path); }

  void WorkTree(const std::string& tree) {
    const std::string dot = (tree == "/" ? "" : tree) + "/.git";
    if (tree != top_) Note(places_.dots, dot);
    if (sys::Status(dot).kind == sys::FileKind::kDirectory) return Go(Kind::kRepository, dot, tree);
    constexpr std::string_view kKey = "gitdir:";
    const auto text = Read(dot, kSmallFile);
    if (!text || !text->starts_with(kKey)) return;
    std::string_view leads = Line(std::string_view(*text).substr(kKey.size()));
    leads.remove_prefix(std::min(leads.find_first_not_of(' '), leads.size()));
    if (!leads.empty()) Go(Kind::kRepository, Lead(leads, tree), tree);
  }

  void Repository(const std::string& directory, Tree tree) {
    Note(places_.repositories, directory);
    if (const auto common = Read(directory + "/commondir", kSmallFile); common && !Line(*common).empty())
      Go(Kind::kRepository, Lead(Line(*common), directory));
    const GitConfig config = Config(directory + "/config", tree.value_or(directory));
    if (config.worktree) tree = Lead(*config.worktree, directory);
    Go(Kind::kConfig, directory + "/config.worktree", tree.value_or(directory));
    if (tree) Index(directory, *tree, config.sha256);
    for (const std::string& name : List(directory + "/worktrees")) {
      const std::string linked = directory + "/worktrees/" + name;
      const auto dot = Read(linked + "/gitdir", kSmallFile);
      const Tree there = dot && !Line(*dot).empty() ? Tree(Parent(Lead(Line(*dot), linked))) : std::nullopt;
      Go(Kind::kRepository, linked, there);
      if (there) Go(Kind::kWorkTree, *there);
    }
    Go(Kind::kModules, directory + "/modules");
  }

  // Submodules' repositories lie anywhere below, by names of one part or more.
  void Modules(const std::string& directory, bool in_repository) {
    for (const std::string& name : List(directory)) {
      if (in_repository && std::ranges::find(kOwnParts, name) != kOwnParts.end()) continue;
      const std::string next = directory + "/" + name;
      if (sys::LinkStatus(next).kind != sys::FileKind::kDirectory) continue;
      const bool is_one = std::ranges::any_of(std::array{"/HEAD", "/config", "/hooks", "/commondir"},
                                              [&](const char* part) { return Is(next + part); });
      if (is_one) Go(Kind::kRepository, next);
      Go(is_one ? Kind::kPartsOfRepository : Kind::kModules, next);
    }
  }

  std::vector<std::string> List(const std::string& directory) {
    if (sys::Status(directory).kind != sys::FileKind::kDirectory) return {};
    auto names = sys::ListDirectory(directory, kMostEntries);
    if (!names || (listed_ += names->size()) > kMostNames) {
      Note(places_.unsearched, directory);
      return {};
    }
    return std::move(*names);
  }

  void Index(const std::string& directory, const std::string& tree, bool sha256) {
    std::vector<std::string> files = {"index"};
    if (Is(directory + "/index")) {
      for (std::string& name : List(directory)) {
        if (name.starts_with("sharedindex.")) files.push_back(std::move(name));
      }
    }
    for (const std::string& file : files) {
      const auto index = Read(directory + "/" + file, kMostBytes);
      if (!index) continue;
      const auto links = GitLinks(*index, sha256);
      if (!links) Note(places_.unsearched, directory + "/" + file);
      for (const std::string& link : links.value_or(std::vector<std::string>())) {
        const std::string there = sys::Normalize(link, tree);
        if (sys::IsWithin(there, tree)) Go(Kind::kWorkTree, there);
      }
    }
  }

  // `base` is what core.hooksPath is seen from.
  GitConfig Config(const std::string& file, const std::string& base) {
    const auto text = Read(file, kSmallFile);
    if (!text) return {};
    GitConfig config = ParseGitConfig(*text);
    const std::string from = config.worktree ? Lead(*config.worktree, Parent(file)) : base;
    for (const std::string& hooks : config.hooks) Note(places_.hooks, Lead(hooks, from));
    for (const std::string& other : config.included) {
      const std::string included = Lead(other, Parent(file));
      Note(places_.configs, included);
      Go(Kind::kConfig, included, from);
    }
    return config;
  }

  const std::string& top_;
  const std::string& home_;
  std::set<std::pair<Kind, std::string>> seen_;
  std::vector<Step> waiting_;
  std::size_t read_ = 0;
  std::size_t listed_ = 0;
  GitPlaces places_;
};

}  // namespace

GitPlaces FindGitPlaces(const std::string& top, const std::string& home) { return Walk(top, home).Find(); }

}  // namespace belljar::plan
