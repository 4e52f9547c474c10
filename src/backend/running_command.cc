// Commands of a live sandbox that run by themselves: each has a thread, which is who would otherwise wait for it.
#include <belljar/running_command.h>

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "backend/live.h"
#include "base/unique_fd.h"
#include "sys/pipe.h"
#include "sys/process.h"

namespace belljar {

struct RunningCommand::State {
  State(std::shared_ptr<backend::Live> sandbox, RunOptions given, CancelToken token)
      : live(std::move(sandbox)), options(std::move(given)), own(std::move(token)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    own.Cancel();
    if (thread.joinable()) thread.join();
  }

  Expected<void> OpenInput();
  Expected<void> JoinTokens();
  Expected<void> Begin(const std::vector<std::string>& argv);
  void Supervise();
  bool over() {
    const std::lock_guard lock(mutex);
    return result.has_value();
  }
  Expected<void> Ask(const plan::Order& order, const char* step) {
    if (!over()) return begun.connection.Ask(order, step);
    return std::unexpected(Error{.step = step, .message = "the command has ended", .hint = {}});
  }

  std::shared_ptr<backend::Live> live;
  RunOptions options;
  CancelToken own;
  base::UniqueFd either;  ///< Readable when one of both tokens is; where the options have one.
  base::UniqueFd input, its_input;
  std::mutex writing;
  backend::Live::Begun begun;
  std::mutex mutex;
  std::condition_variable ended;
  std::optional<Result> result;  ///< Guarded by mutex; set once.
  std::thread thread;
};

// A socket, not a pipe: it can be closed while another thread writes to it, and without a signal.
Expected<void> RunningCommand::State::OpenInput() {
  if (!options.open_input) return {};
  if (options.descriptors.in >= 0) {
    return std::unexpected(Error{.step = "open standard input",
                                 .message = "there is a descriptor for it as well",
                                 .hint = "leave out descriptors.in or open_input"});
  }
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return std::unexpected(sys::ErrnoError("open standard input", errno));
  }
  input.Reset(ends[0]);
  its_input.Reset(ends[1]);
  if (!sys::MoveAboveStreams(input) || !sys::MoveAboveStreams(its_input)) {
    return std::unexpected(sys::ErrnoError("open standard input", errno));
  }
  options.descriptors.in = its_input.get();
  return {};
}

Expected<void> RunningCommand::State::JoinTokens() {
  if (options.cancel == nullptr) return {};
  either.Reset(::epoll_create1(EPOLL_CLOEXEC));
  for (const int token : {own.fd(), options.cancel->fd()}) {
    epoll_event event{.events = EPOLLIN, .data = {}};
    if (::epoll_ctl(either.get(), EPOLL_CTL_ADD, token, &event) == 0) continue;
    return std::unexpected(sys::ErrnoError("listen to a cancel token", errno));
  }
  return {};
}

Expected<void> RunningCommand::State::Begin(const std::vector<std::string>& argv) {
  if (auto open = OpenInput(); !open) return open;
  if (auto joined = JoinTokens(); !joined) return joined;
  auto handed = live->Begin(argv, options);
  if (!handed) return std::unexpected(handed.error());
  begun = std::move(*handed);
  if (begun.over) {
    Supervise();
    return {};
  }
  try {
    const sys::BlockedSignals blocked;  // The host program's handlers are not its.
    thread = std::thread([this] { Supervise(); });
  } catch (const std::system_error& error) {
    return std::unexpected(sys::ErrnoError("start a thread for a command", error.code().value()));
  }
  return {};
}

void RunningCommand::State::Supervise() {
  Result done = live->Finish(begun, options, either.valid() ? either.get() : own.fd());
  if (its_input.valid()) ::shutdown(its_input.get(), SHUT_RDWR);
  {
    const std::lock_guard lock(mutex);
    result = std::move(done);
  }
  ended.notify_all();
}

RunningCommand::RunningCommand(std::unique_ptr<State> state) : state_(std::move(state)) {}
RunningCommand::RunningCommand(RunningCommand&&) noexcept = default;
RunningCommand& RunningCommand::operator=(RunningCommand&&) noexcept = default;
RunningCommand::~RunningCommand() = default;

Expected<RunningCommand> LiveSandbox::Start(const std::vector<std::string>& argv, RunOptions options) {
  auto token = CancelToken::Make();
  if (!token) return std::unexpected(token.error());
  auto state = std::make_unique<RunningCommand::State>(state_->live, std::move(options), std::move(*token));
  if (auto begun = state->Begin(argv); !begun) return std::unexpected(begun.error());
  return RunningCommand(std::move(state));
}

const Result& RunningCommand::Wait() {
  std::unique_lock lock(state_->mutex);
  state_->ended.wait(lock, [this] { return state_->result.has_value(); });
  return *state_->result;
}

bool RunningCommand::over() const { return state_->over(); }

Expected<void> RunningCommand::Signal(int signal) {
  constexpr int kLast = 64;
  if (signal < 1 || signal > kLast) {
    return std::unexpected(
        Error{.step = "send a signal", .message = "there is none of that number", .hint = "they go from 1 to 64"});
  }
  return state_->Ask({.kind = plan::OrderKind::kSignal, .signal = signal, .rows = 0, .columns = 0}, "send a signal");
}

Expected<void> RunningCommand::Resize(TerminalSize size) {
  constexpr char kStep[] = "change the size of a terminal";
  if (state_->options.streams != StreamMode::kTerminal) {
    return std::unexpected(
        Error{.step = kStep, .message = "the command has none", .hint = "start it with StreamMode::kTerminal"});
  }
  return state_->Ask({.kind = plan::OrderKind::kResize, .signal = 0, .rows = size.rows, .columns = size.columns},
                     kStep);
}

Expected<void> RunningCommand::Write(std::string_view data) {
  constexpr char kStep[] = "write to standard input";
  const base::UniqueFd& input = state_->input;
  if (!input.valid()) {
    return std::unexpected(Error{.step = kStep, .message = "it is not open", .hint = "start it with open_input"});
  }
  const std::lock_guard lock(state_->writing);
  while (!data.empty()) {
    const ssize_t sent = ::send(input.get(), data.data(), data.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EPIPE) {
      return std::unexpected(Error{.step = kStep, .message = "the command reads no more", .hint = {}, .code = EPIPE});
    }
    if (sent < 0) return std::unexpected(sys::ErrnoError(kStep, errno));
    data.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

void RunningCommand::CloseInput() {
  if (state_->input.valid()) ::shutdown(state_->input.get(), SHUT_WR);
}

void RunningCommand::Cancel() { state_->own.Cancel(); }

}  // namespace belljar
