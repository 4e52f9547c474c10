// plan/builder.h: collects steps and texts and lays them out as one flat LaunchPlan.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <belljar/channel.h>
#include <belljar/policy.h>

#include "plan/launch_plan.h"

namespace belljar::plan {

enum class Streams : std::uint8_t { kPipes, kTerminal };

struct StepArguments {
  std::string_view text = {};
  std::string_view more = {};
  std::uint64_t value = 0;
  std::uint64_t more_value = 0;
  int slot = -1;
  bool covers = false;  ///< The host can take this mount away, and init watches it.
};

class Builder {
 public:
  void Add(Op op, const StepArguments& arguments = {});
  /// Fields that are plain numbers are set directly; the rest by the calls below.
  LaunchPlan head{};
  void SetCommand(std::vector<std::uint64_t> block) { command_ = std::move(block); }
  void SetDiskPaths(const std::vector<std::string>& list) { disk_paths_ = Intern(list); }
  void SetFilter(std::span<const sock_filter> filter) { filter_ = filter; }
  void SetTraceFilter(std::span<const sock_filter> filter) { trace_filter_ = filter; }

  /// Lays everything out. The builder is used up.
  std::vector<std::uint64_t> Finish();

 private:
  std::uint32_t Intern(std::string_view text);
  std::vector<std::uint32_t> Intern(const std::vector<std::string>& list);

  std::vector<Step> steps_;
  std::string texts_ = std::string(1, '\0');  // Offset 0 is the empty text.
  std::vector<std::uint64_t> command_;
  std::vector<std::uint32_t> disk_paths_;
  std::span<const sock_filter> filter_;
  std::span<const sock_filter> trace_filter_;
};

/// What a CommandBlock is made of.
struct CommandParts {
  const std::vector<std::string>& argv;
  const std::vector<std::string>& envp;
  const std::vector<std::string>& exec_paths;
  std::uint64_t wall_ns;  ///< May be kUnlimited.
  std::span<const Channel> channels = {};
  std::string_view workdir = {};  ///< Empty: that of the plan.
  Streams streams = Streams::kPipes;
  std::uint16_t rows = 0, columns = 0;  ///< Of the terminal.
  const Policy* own = nullptr;          ///< Of a live sandbox's command: its own limits, and what it keeps.
};
std::vector<std::uint64_t> LayOutCommand(const CommandParts& parts);

/// Mount options in the form of Op::kTmpfs.
std::string Options(std::initializer_list<std::pair<std::string_view, std::string>> pairs);

}  // namespace belljar::plan
