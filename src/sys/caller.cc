#include <belljar/caller.h>

#include <unistd.h>

#include "sys/files.h"

namespace belljar {
namespace {

bool Names(std::string_view entry, std::string_view name) {
  return entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=';
}

}  // namespace

Caller Caller::OfThisProcess() {
  Caller caller{.directory = sys::CurrentDirectory(), .environment = {}};
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) caller.environment.emplace_back(*entry);
  return caller;
}

std::optional<std::string> Caller::Variable(std::string_view name) const {
  for (const std::string& entry : environment) {
    if (Names(entry, name)) return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

Caller& Caller::Set(std::string_view name, std::string_view value) {
  std::erase_if(environment, [&](const std::string& entry) { return Names(entry, name); });
  environment.push_back(std::string(name) + "=" + std::string(value));
  return *this;
}

}  // namespace belljar
