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
  const std::pair<std::vector<std::uint32_t>*, std::uint32_t*> lists[] = {
      {&argv_, &head.argv}, {&envp_, &head.envp}, {&exec_paths_, &head.exec_paths}, {&disk_paths_, &head.disk_paths}};
  for (const auto& [list, at] : lists) *at = place((list->size() + 1) * sizeof(std::uint32_t));
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
  for (const auto& [list, at] : lists) {
    auto* const offsets = reinterpret_cast<std::uint32_t*>(bytes + *at);
    for (std::size_t i = 0; i < list->size(); ++i) offsets[i] = (*list)[i] + texts;
  }
  std::memcpy(bytes + texts, texts_.data(), texts_.size());
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
