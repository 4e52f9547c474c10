#include "plan/builder.h"

#include <cstring>

#include <belljar/limit.h>

namespace belljar::plan {

std::uint32_t Builder::Intern(std::string_view text) {
  if (text.empty()) return 0;
  const auto offset = static_cast<std::uint32_t>(texts_.size());
  texts_.append(text).push_back('\0');
  return offset;
}

std::vector<std::uint32_t> Builder::Intern(const std::vector<std::string>& list) {
  std::vector<std::uint32_t> offsets;
  offsets.reserve(list.size() + 1);
  for (const std::string& text : list) {
    // An empty argument is a text of its own: offset 0 would end the list.
    offsets.push_back(static_cast<std::uint32_t>(texts_.size()));
    texts_.append(text).push_back('\0');
  }
  return offsets;
}

void Builder::Add(Op op, const StepArguments& arguments) {
  steps_.push_back({.op = op,
                    .slot = static_cast<std::int16_t>(arguments.slot),
                    .text = Intern(arguments.text),
                    .more = Intern(arguments.more),
                    .covers = arguments.covers ? 1U : 0U,
                    .value = arguments.value,
                    .more_value = op == Op::kFile ? arguments.more.size() : arguments.more_value});
}

std::vector<std::uint64_t> Builder::Finish() {
  std::uint32_t end = sizeof(LaunchPlan);
  const auto place = [&](std::size_t bytes) {
    const std::uint32_t at = end;
    end += static_cast<std::uint32_t>((bytes + 7) / 8 * 8);
    return at;
  };
  head.step_count = static_cast<std::uint32_t>(steps_.size());
  head.steps = place(steps_.size() * sizeof(Step));
  head.filter = place(filter_.size_bytes());
  head.filter_length = static_cast<std::uint32_t>(filter_.size());
  head.trace_filter = place(trace_filter_.size_bytes());
  head.trace_filter_length = static_cast<std::uint32_t>(trace_filter_.size());
  head.disk_paths = place((disk_paths_.size() + 1) * sizeof(std::uint32_t));
  head.command = command_.empty() ? 0 : place(command_.size() * sizeof(std::uint64_t));
  const std::uint32_t texts = place(texts_.size());
  head.size = end;

  std::vector<std::uint64_t> block(end / 8);
  auto* const bytes = reinterpret_cast<char*>(block.data());
  for (Step& step : steps_) {
    step.text += texts;  // Offset 0 of the texts is the empty one.
    step.more += texts;
  }
  std::memcpy(bytes, &head, sizeof head);
  std::memcpy(bytes + head.steps, steps_.data(), steps_.size() * sizeof(Step));
  if (!filter_.empty()) std::memcpy(bytes + head.filter, filter_.data(), filter_.size_bytes());
  if (!trace_filter_.empty()) {
    std::memcpy(bytes + head.trace_filter, trace_filter_.data(), trace_filter_.size_bytes());
  }
  auto* const offsets = reinterpret_cast<std::uint32_t*>(bytes + head.disk_paths);
  for (std::size_t i = 0; i < disk_paths_.size(); ++i) offsets[i] = disk_paths_[i] + texts;
  if (!command_.empty()) std::memcpy(bytes + head.command, command_.data(), command_.size() * sizeof(std::uint64_t));
  std::memcpy(bytes + texts, texts_.data(), texts_.size());
  return block;
}

std::vector<std::uint64_t> LayOutCommand(const CommandParts& parts) {
  const std::vector<std::string>* const lists[] = {&parts.argv, &parts.envp, &parts.exec_paths};
  std::size_t bytes = sizeof(CommandBlock) + (parts.channels.size() + 1) * sizeof(std::uint32_t);
  for (const auto* list : lists) {
    bytes += (list->size() + 1) * sizeof(std::uint32_t);
    for (const std::string& text : *list) bytes += text.size() + 1;
  }
  if (!parts.workdir.empty()) bytes += parts.workdir.size() + 1;
  std::vector<std::uint64_t> block((bytes + 7) / 8);  // Zeros, which end the lists and the texts.
  auto* const base = reinterpret_cast<char*>(block.data());
  CommandBlock head{};
  head.wall_ns = parts.wall_ns;
  head.size = static_cast<std::uint32_t>(block.size() * sizeof(std::uint64_t));
  head.terminal = parts.streams == Streams::kTerminal ? 1 : 0;
  head.rows = parts.rows;
  head.columns = parts.columns;
  head.file_size = head.open_files = head.cpu_seconds = kNoLimit;
  if (parts.own != nullptr) {
    const Limits& limits = parts.own->limits;
    head.keeps = parts.own->background == Background::kKeep ? 1 : 0;
    head.file_size = limits.file_size;
    head.open_files = limits.open_files;
    if (limits.cpu_time_ns != kUnlimited)
      head.cpu_seconds = limits.cpu_time_ns / 1'000'000'000 + 1;  // Of each process.
  }
  std::size_t end = sizeof head;
  const auto place = [&](std::size_t count) {
    const std::size_t at = end;
    end += (count + 1) * sizeof(std::uint32_t);
    return static_cast<std::uint32_t>(at);
  };
  head.argv = place(parts.argv.size());
  head.envp = place(parts.envp.size());
  head.exec_paths = place(parts.exec_paths.size());
  head.channels = place(parts.channels.size());
  const auto write = [&](std::string_view text) {
    const std::size_t at = end;
    std::memcpy(base + end, text.data(), text.size());
    end += text.size() + 1;
    return static_cast<std::uint32_t>(at);
  };
  for (const auto& [list, at] : {std::pair(lists[0], head.argv), {lists[1], head.envp}, {lists[2], head.exec_paths}}) {
    auto* offset = reinterpret_cast<std::uint32_t*>(base + at);
    for (const std::string& text : *list) *offset++ = write(text);
  }
  auto* number = reinterpret_cast<std::uint32_t*>(base + head.channels);
  for (const Channel& channel : parts.channels) *number++ = static_cast<std::uint32_t>(channel.number);
  if (!parts.workdir.empty()) head.workdir = write(parts.workdir);
  std::memcpy(base, &head, sizeof head);
  return block;
}

std::string Options(std::initializer_list<std::pair<std::string_view, std::string>> pairs) {
  std::string result;
  for (const auto& [key, value] : pairs) {
    result.append(key).push_back('\0');
    result.append(value).push_back('\0');
  }
  return result;
}

}  // namespace belljar::plan
