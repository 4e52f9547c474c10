#include "plan/builder.h"

#include <cstring>

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
                    .pad = 0,
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

std::vector<std::uint64_t> LayOutCommand(const std::vector<std::string>& argv, const std::vector<std::string>& envp,
                                         const std::vector<std::string>& exec_paths, std::uint64_t wall_ns) {
  const std::vector<std::string>* const lists[] = {&argv, &envp, &exec_paths};
  std::size_t bytes = sizeof(CommandBlock);
  for (const auto* list : lists) {
    bytes += (list->size() + 1) * sizeof(std::uint32_t);
    for (const std::string& text : *list) bytes += text.size() + 1;
  }
  std::vector<std::uint64_t> block((bytes + 7) / 8);
  auto* const base = reinterpret_cast<char*>(block.data());
  CommandBlock head{
      .wall_ns = wall_ns, .size = static_cast<std::uint32_t>(block.size() * 8), .argv = 0, .envp = 0, .exec_paths = 0};
  std::uint32_t* const places[] = {&head.argv, &head.envp, &head.exec_paths};
  std::size_t end = sizeof head;
  for (std::size_t i = 0; i < 3; ++i) {
    *places[i] = static_cast<std::uint32_t>(end);
    end += (lists[i]->size() + 1) * sizeof(std::uint32_t);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    auto* offset = reinterpret_cast<std::uint32_t*>(base + *places[i]);
    for (const std::string& text : *lists[i]) {
      *offset++ = static_cast<std::uint32_t>(end);
      std::memcpy(base + end, text.c_str(), text.size() + 1);
      end += text.size() + 1;
    }
  }
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
