#include "cli/channel_flags.h"

#include <fcntl.h>

#include <charconv>
#include <string_view>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

namespace belljar::cli {
namespace {

bool ReadNumber(std::string_view text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0;
}

Expected<Channel> Parse(const std::string& text) {
  std::string_view rest(text);
  Channel channel;
  if (const std::size_t equals = rest.find('='); equals != std::string_view::npos) {
    channel.name = rest.substr(0, equals);
    rest.remove_prefix(equals + 1);
  }
  const std::size_t colon = rest.find(':');
  bool good = ReadNumber(rest.substr(0, colon), channel.fd);
  channel.number = channel.fd;
  if (good && colon != std::string_view::npos) good = ReadNumber(rest.substr(colon + 1), channel.number);
  if (!good) {
    return std::unexpected(Error{.step = "--channel",
                                 .message = fmt::format("\"{}\" is not [NAME=]FD[:NUMBER]", text),
                                 .hint = "as in: belljar run --channel data=5:3 -- sh -c 'cat <&3' 5< file"});
  }
  // What this program opened itself is closed at exec; what it was given is not.
  const int flags = ::fcntl(channel.fd, F_GETFD);
  if (flags < 0 || (flags & FD_CLOEXEC) != 0) {
    return std::unexpected(
        Error{.step = "--channel",
              .message = fmt::format("descriptor {} is not open", channel.fd),
              .hint = fmt::format("open it in the shell, as in: belljar run … {}< file", channel.fd)});
  }
  return channel;
}

}  // namespace

void ChannelFlags::AddTo(CLI::App& app) {
  app.add_option(
         "--channel", texts_,
         "Hand an open descriptor (pipe, socket, plain file) to the command: [NAME=]FD[:NUMBER], e.g. data=5:3; "
         "may be repeated")
      ->allow_extra_args(false);
}

Expected<std::vector<Channel>> ChannelFlags::Build() const {
  std::vector<Channel> channels;
  for (const std::string& text : texts_) {
    auto channel = Parse(text);
    if (!channel) return std::unexpected(channel.error());
    channels.push_back(std::move(*channel));
  }
  return channels;
}

}  // namespace belljar::cli
