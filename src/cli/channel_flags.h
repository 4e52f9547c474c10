// cli/channel_flags.h: --channel, which hands an open descriptor of the caller's to the command.
#pragma once

#include <string>
#include <vector>

#include <belljar/error.h>
#include <belljar/run.h>

namespace CLI {  // NOLINT(readability-identifier-naming): the library chose it
class App;
}

namespace belljar::cli {

class ChannelFlags {
 public:
  void AddTo(CLI::App& app);
  Expected<std::vector<Channel>> Build() const;

 private:
  std::vector<std::string> texts_;
};

}  // namespace belljar::cli
