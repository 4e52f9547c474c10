#include "backend/options.h"

#include <algorithm>
#include <utility>

#include "sys/process.h"

namespace belljar::backend {

Expected<void> CheckPolicy(const Policy& policy) {
  if (const std::optional<Error>& mistake = policy.error(); mistake) return std::unexpected(*mistake);
  return policy.Check();
}

Expected<void> CheckDescriptors(const RunOptions& options) {
  const auto wrong = [](std::string message, std::string hint = "open /dev/null in its place") {
    return std::unexpected(
        Error{.step = "pass the streams through", .message = std::move(message), .hint = std::move(hint)});
  };
  const Descriptors& given = options.descriptors;
  if (given.in >= 0 && !sys::IsOpen(given.in)) return wrong("the descriptor of standard input is closed");
  if (options.streams == StreamMode::kCapture) return {};
  const bool terminal = options.streams == StreamMode::kTerminal;
  if (terminal && given.in < 0) {
    return wrong("a terminal needs a descriptor of standard input", "in a live sandbox open_input will do as well");
  }
  if (options.on_output) return {};
  if (!sys::IsOpen(given.out)) return wrong("the descriptor for standard output is closed, or none was given");
  if (terminal || sys::IsOpen(given.err)) return {};
  return wrong("the descriptor for standard error is closed, or none was given");
}

Expected<const Policy*> ForRun(const Policy& policy, const RunOptions& options, std::optional<Policy>& own) {
  const bool shorter = options.wall_ns < policy.limits.wall_ns;
  const bool less_time = options.cpu_time_ns < policy.limits.cpu_time_ns;
  if (!shorter && !less_time && options.workdir.empty() && options.environment.empty()) return &policy;
  own = policy;
  if (shorter) own->limits.wall_ns = options.wall_ns;
  if (less_time) own->limits.cpu_time_ns = options.cpu_time_ns;
  if (!options.workdir.empty()) own->Workdir(options.workdir);
  for (const auto& [name, value] : options.environment) {
    std::erase_if(own->environment.set, [&](const auto& variable) { return variable.first == name; });
    std::erase(own->environment.pass, name);
    own->Env(name, value);
  }
  if (auto good = CheckPolicy(*own); !good) return std::unexpected(good.error());
  return &*own;
}

launch::Attached Attach(const RunOptions& options) {
  return {.text = options.input,
          .source = options.descriptors.in,
          .channels = options.channels,
          .terminal = options.streams == StreamMode::kTerminal};
}

plan::Streams StreamsOf(const RunOptions& options) {
  return options.streams == StreamMode::kTerminal ? plan::Streams::kTerminal : plan::Streams::kPipes;
}

}  // namespace belljar::backend
