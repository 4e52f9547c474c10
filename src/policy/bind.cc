#include "policy/bind.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "policy/nearest.h"
#include "policy/profile.h"

namespace belljar::policy {
namespace {

// Where a value comes from decides its types: a document has real numbers, a flag has only text.
enum class Origin : std::uint8_t { kDocument, kText };

constexpr auto kAccesses = std::to_array<std::string_view>({"ro", "rw"});
constexpr auto kMountKeys = std::to_array<std::string_view>({"source", "target", "access"});

std::string DidYouMean(std::string_view nearest) {
  return nearest.empty() ? std::string() : fmt::format("did you mean {}?", Quoted(nearest));
}

bool HasNul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

class Binder {
 public:
  Binder(Policy& policy, std::string_view name, Origin origin) : policy_(policy), name_(name), origin_(origin) {}

  Expected<void> Document(const Node& document) {
    for (const Node& node : document.items) {
      if (node.name == "profile") continue;  // Bind has followed it
      if (Expected<void> done = Top(node); !done) return done;
    }
    return {};
  }

  Expected<void> Assign(const Key& key, const Node& node, std::string_view called) {
    called_ = called;
    switch (key.kind) {
      case Kind::kProfile: return AssignProfile(key, node);
      case Kind::kChoice: return AssignChoice(key, node);
      case Kind::kNumber: return AssignNumber(key, node);
      case Kind::kText: return AssignText(node, "a string such as " + Quoted(key.example), key.text(policy_));
      case Kind::kTextList: return AssignList(key, node);
      case Kind::kMounts: return AssignMounts(node);
      case Kind::kTextMap: return AssignMap(node);
    }
    return Fail(node, "is of an unknown kind");
  }

 private:
  std::unexpected<Error> Fail(const Node& node, std::string message, std::string hint = {}) const {
    return std::unexpected(Error{StepAt(name_, node.line, called_), std::move(message), std::move(hint)});
  }

  std::unexpected<Error> WrongType(const Node& node, std::string_view wanted) const {
    return Fail(node, fmt::format("expected {}, found {}", wanted, Name(node.type)));
  }

  Expected<void> Top(const Node& node) {
    const auto in_section = [&](const Key& key) { return key.section() == node.name; };
    const bool is_section = !node.name.empty() && std::ranges::any_of(Keys(), in_section);
    if (!is_section) return Single(node.name, node);
    if (node.type != NodeType::kTable) {
      called_ = node.name;
      return WrongType(node, fmt::format("a table with {} keys", Quoted(node.name)));
    }
    for (const Node& item : node.items) {
      if (Expected<void> done = Single(node.name + "." + item.name, item); !done) return done;
    }
    return {};
  }

  Expected<void> Single(const std::string& name, const Node& node) {
    const Key* key = FindKey(name);
    if (key == nullptr) return std::unexpected(UnknownKey(name, StepAt(name_, node.line, "")));
    Expected<void> done = Assign(*key, node, key->name);
    if (done) policy_.NoteOrigin(key->name, StepAt(name_, node.line, key->name));
    return done;
  }

  Expected<void> AssignProfile(const Key& key, const Node& node) {
    std::string name;
    if (Expected<void> read = AssignText(node, "the name of a profile such as " + Quoted(key.example), name); !read) {
      return read;
    }
    Expected<Policy> profile = LoadProfile(name);
    if (!profile) return Fail(node, profile.error().message, profile.error().hint);
    policy_ = *std::move(profile);
    return {};
  }

  Expected<void> AssignChoice(const Key& key, const Node& node) {
    const Expected<std::size_t> choice = Choose(node, key.choices);
    if (!choice) return std::unexpected(choice.error());
    key.set(policy_, *choice);
    return {};
  }

  Expected<std::size_t> Choose(const Node& node, std::span<const std::string_view> choices) const {
    if (node.type != NodeType::kText)
      return WrongType(node, fmt::format("one of \"{}\"", fmt::join(choices, "\", \"")));
    const auto found = std::ranges::find(choices, node.text);
    if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
    return Fail(node, fmt::format("{} is not one of {}", Quoted(node.text), fmt::join(choices, ", ")),
                DidYouMean(Nearest(node.text, choices)));
  }

  Expected<void> AssignNumber(const Key& key, const Node& node) {
    if (node.type == NodeType::kText && node.text == kUnlimitedWord) {
      key.set(policy_, kUnlimited);
      return {};
    }
    const bool text_is_right = origin_ == Origin::kText || key.unit == Unit::kBytes || key.unit == Unit::kDuration;
    if (node.type == NodeType::kText && !text_is_right) {
      return Fail(node, fmt::format("expected a number, found the string {}", Quoted(node.text)),
                  fmt::format("write {} without quotes, or \"unlimited\"", key.example));
    }
    if (node.type != NodeType::kText && node.type != NodeType::kNumber) {
      return WrongType(node, fmt::format("a value such as {}", Quoted(key.example)));
    }
    const Expected<std::uint64_t> value = ParseNumber(key.unit, node.text);
    if (!value) return Fail(node, value.error().message, value.error().hint + "; to switch it off, \"unlimited\"");
    if (*value < key.min || *value > key.max) {
      const bool low = *value < key.min;
      return Fail(node,
                  fmt::format("{} is {} than {}, the {} there is", Quoted(node.text), low ? "less" : "more",
                              FormatNumber(key.unit, low ? key.min : key.max), low ? "least" : "most"),
                  fmt::format("write a value such as {}, or \"unlimited\" to switch it off", Quoted(key.example)));
    }
    key.set(policy_, *value);
    return {};
  }

  Expected<void> AssignText(const Node& node, std::string_view wanted, std::string& to) const {
    if (node.type != NodeType::kText) return WrongType(node, wanted);
    if (HasNul(node.text)) return Fail(node, "has a NUL character in it");
    to = node.text;
    return {};
  }

  // A document states the whole list; a flag or Set adds to it.
  Expected<void> AssignList(const Key& key, const Node& node) {
    std::vector<std::string>& list = key.list(policy_);
    const std::string wanted = fmt::format("a list of strings such as [{}]", Quoted(key.example));
    if (origin_ == Origin::kText) return AssignText(node, wanted, list.emplace_back());
    if (node.type != NodeType::kList) return WrongType(node, wanted);
    list.clear();
    for (const Node& item : node.items) {
      if (Expected<void> done = AssignText(item, wanted, list.emplace_back()); !done) return done;
    }
    return {};
  }

  Expected<void> AssignMounts(const Node& node) {
    if (origin_ == Origin::kText) return Fail(node, "can't be set from text", "use ReadOnly() or ReadWrite()");
    static constexpr std::string_view kWanted = "a list such as [{source = \"/srv/data\", target = \"/data\"}]";
    if (node.type != NodeType::kList) return WrongType(node, kWanted);
    policy_.files.mounts.clear();
    for (const Node& item : node.items) {
      if (item.type != NodeType::kTable) return WrongType(item, kWanted);
      if (Expected<void> done = AssignMount(item); !done) return done;
    }
    return {};
  }

  Expected<void> AssignMount(const Node& item) {
    Mount mount;
    for (const Node& value : item.items) {
      Expected<void> done;
      if (value.name == "source") {
        done = AssignText(value, "a path", mount.source);
      } else if (value.name == "target") {
        done = AssignText(value, "a path", mount.target);
      } else if (value.name == "access") {
        const Expected<std::size_t> access = Choose(value, kAccesses);
        if (!access) return std::unexpected(access.error());
        mount.access = *access == 0 ? Access::kReadOnly : Access::kReadWrite;
      } else {
        const std::string_view nearest = Nearest(value.name, kMountKeys);
        done = Fail(value, fmt::format("a mount has no key {}", Quoted(value.name)),
                    nearest.empty() ? "its keys are source, target and access" : DidYouMean(nearest));
      }
      if (!done) return done;
    }
    if (mount.source.empty()) return Fail(item, "a mount needs a source", "source is the path on the host");
    if (mount.target.empty()) mount.target = mount.source;
    policy_.files.mounts.push_back(std::move(mount));
    return {};
  }

  Expected<void> AssignMap(const Node& node) {
    static constexpr std::string_view kWanted = "a table of strings such as {LANG = \"C.UTF-8\"}";
    if (origin_ == Origin::kText) {
      const std::size_t equals = node.text.find('=');
      if (equals == std::string::npos || equals == 0) {
        return Fail(node, fmt::format("{} is not NAME=VALUE", Quoted(node.text)),
                    "to hand on a variable of the caller, pass it by name instead");
      }
      if (HasNul(node.text)) return Fail(node, "has a NUL character in it");
      policy_.Env(node.text.substr(0, equals), node.text.substr(equals + 1));
      return {};
    }
    if (node.type != NodeType::kTable) return WrongType(node, kWanted);
    policy_.environment.set.clear();
    for (const Node& variable : node.items) {
      std::string text;
      if (Expected<void> done = AssignText(variable, kWanted, text); !done) return done;
      policy_.environment.set.emplace_back(variable.name, std::move(text));
    }
    return {};
  }

  Policy& policy_;
  std::string_view name_;
  Origin origin_;
  std::string_view called_;  // what errors call the key at hand
};

}  // namespace

Error UnknownKey(std::string_view key, std::string step) {
  const std::string_view nearest = NearestKey(key);
  std::string hint = DidYouMean(nearest);
  if (hint.empty()) hint = "belljar policy schema lists the keys";
  return Error{std::move(step), fmt::format("there is no key {}", Quoted(key)), std::move(hint)};
}

Expected<void> SetKey(Policy& policy, const Key& key, std::string_view value, std::string_view step) {
  const Node node{.type = NodeType::kText, .text = std::string(value)};
  Expected<void> done = Binder(policy, {}, Origin::kText).Assign(key, node, step);
  // A list may have elements from elsewhere too, so its place stays the first one.
  const bool replaces = key.kind == Kind::kChoice || key.kind == Kind::kNumber || key.kind == Kind::kText;
  if (done && replaces) policy.NoteOrigin(key.name, std::string(step));
  return done;
}

Expected<Policy> Bind(const Node& document, std::string_view name, const std::optional<Policy>& base) {
  Policy policy;
  Binder binder(policy, name, Origin::kDocument);
  for (const Node& node : document.items) {
    if (node.name != "profile") continue;
    const Key& key = *FindKey(node.name);
    if (Expected<void> done = binder.Assign(key, node, key.name); !done) return std::unexpected(done.error());
  }
  if (base) policy = *base;
  if (Expected<void> done = binder.Document(document); !done) return std::unexpected(done.error());
  return policy;
}

}  // namespace belljar::policy
