#include "launch/pumps.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <thread>

#include "launch/stream.h"
#include "launch/terminal.h"
#include "sys/pipe.h"
#include "sys/process.h"

namespace belljar::launch {

struct Pumps::State {
  base::UniqueFd output, error, input;  ///< Of a terminal `output` is both ways.
  OutputPump out, err;
  InputPump in;
  Flow out_flow = Flow::kEnded, err_flow = Flow::kEnded, in_flow = Flow::kEnded;
  TerminalSettings settings;
  bool begun = false;
  std::thread thread;
  // Signals (sys::Signal); the first is the supervisor's.
  sys::Pipe stop, news, done;
  int cancel = -1;  ///< As of Finish. This and the next two are set before `stop`.
  Reader reader = Reader::kHurried;
  Writers writers = Writers::kDead;
  std::atomic<bool> awaits_reader = false;
  std::atomic<bool> over_limit = false;
  std::atomic<bool> abandoned = false;  ///< The caller's descriptors may be anybody's by now.
  OutputCallback told;
  bool owns_source = false;           ///< A socket of ours, whose other end wants to know.
  std::atomic<bool> telling = false;  ///< The caller is in there, and needs what it has.
};

namespace {

// Of a pipe, or of what is none.
std::uint64_t Capacity(int fd) {
  const int size = ::fcntl(fd, F_GETPIPE_SZ);
  return size > 0 ? static_cast<std::uint64_t>(size) : 64 * 1024;
}

constexpr int kGraceMs = 1000;  // For a thread to come back when the guest is dead: only a helper of it can hold it.

// What a pump waits for; nothing when it is done.
template <typename Pump>
pollfd Awaits(const Pump& pump, Flow flow) {
  if (flow == Flow::kWaitForSource) return {pump.source(), POLLIN, 0};
  if (flow == Flow::kWaitForTarget) return {pump.target(), POLLOUT, 0};
  return {-1, 0, 0};
}

}  // namespace

Pumps::Pumps() : state_(std::make_shared<State>()) {}

Pumps::~Pumps() {
  if (state_->thread.joinable()) (void)Finish(Reader::kHurried, -1);
}

void Pumps::Connect(Connection& connection, const RunOptions& options, std::uint64_t limit) {
  State& state = *state_;
  state.output = std::move(connection.output);
  state.error = std::move(connection.error);
  state.input = std::move(connection.input);
  state.in = std::move(connection.feed);
  state.owns_source = options.open_input;
  if (options.streams == StreamMode::kCapture) {
    state.out = OutputPump(state.output.get(), limit);
    state.err = OutputPump(state.error.get(), limit);
  } else {
    state.out = OutputPump(state.output.get(), limit, options.on_output ? -1 : options.descriptors.out);
    state.err = OutputPump(state.error.get(), limit, options.on_output ? -1 : options.descriptors.err);
  }
  if (options.on_output) Tell(state, options.on_output);
  state.out_flow = state.err_flow = Flow::kWaitForSource;
  if (state.input.valid()) state.in_flow = state.in.waits_for_source() ? Flow::kWaitForSource : Flow::kWaitForTarget;
}

void Pumps::ConnectTerminal(base::UniqueFd master, const RunOptions& options, std::uint64_t limit) {
  State& state = *state_;
  SetNonBlocking(master.get());
  state.settings.Begin(master.get(), options.descriptors.in);
  state.out = OutputPump(master.get(), limit, options.on_output ? -1 : options.descriptors.out);
  if (options.on_output) Tell(state, options.on_output);
  state.in = InputPump(options.input, options.descriptors.in, master.get());
  state.owns_source = options.open_input;
  state.out_flow = state.in_flow = Flow::kWaitForSource;
  state.output = std::move(master);
}

void Pumps::Tell(State& state, const OutputCallback& told) {
  state.told = told;
  const auto tell = [&state](OutputStream stream, std::string_view piece) {
    state.telling = true;
    if (!state.abandoned) state.told(stream, piece);
    state.telling = false;
  };
  state.out.Tell([tell](std::string_view piece) { tell(OutputStream::kOut, piece); });
  state.err.Tell([tell](std::string_view piece) { tell(OutputStream::kErr, piece); });
}

std::array<pollfd, 3> Pumps::Awaited() const {
  return {Awaits(state_->out, state_->out_flow), Awaits(state_->err, state_->err_flow),
          Awaits(state_->in, state_->in_flow)};
}

bool Pumps::Begin() {
  State& state = *state_;
  for (sys::Pipe* signal : {&state.stop, &state.news, &state.done}) {
    auto made = sys::MakePipe("make a pipe");
    if (!made) return false;
    *signal = std::move(*made);
  }
  state.out.StopWhen(state.abandoned);
  state.err.StopWhen(state.abandoned);
  state.in.StopWhen(state.abandoned);
  state.in.OwnText();
  try {
    const sys::BlockedSignals blocked;  // The host program's handlers are not its, and SIGPIPE is nobody's.
    state.thread = std::thread([held = state_] { Work(*held); });
  } catch (const std::system_error&) {
    return false;
  }
  state.begun = true;
  return true;
}

bool Pumps::begun() const { return state_->begun; }
int Pumps::news_fd() const { return state_->news.read.get(); }
bool Pumps::over_limit() const { return state_->over_limit; }

void Pumps::Work(State& state) {
  while (Turn(state)) {
  }
  Drain(state);
  sys::Signal(state.done);
}

// Waits for what can be moved, and moves a little of each. False when it is told to stop.
bool Pumps::Turn(State& state) {
  enum { kStop, kResize, kOut, kErr, kIn, kCount };
  std::array<pollfd, kCount> waits{};
  waits[kStop] = {state.stop.read.get(), POLLIN, 0};
  waits[kResize] = {state.settings.resize_fd(), POLLIN, 0};
  waits[kOut] = Awaits(state.out, state.out_flow);
  waits[kErr] = Awaits(state.err, state.err_flow);
  waits[kIn] = Awaits(state.in, state.in_flow);
  if (::poll(waits.data(), waits.size(), -1) < 0) return errno == EINTR || errno == ENOMEM;
  if (waits[kStop].revents != 0) return false;
  if (waits[kResize].revents != 0) state.settings.CopySize();
  const auto move = [&](OutputPump& pump, Flow& flow, base::UniqueFd& source) {
    flow = pump.Pump();
    if (flow == Flow::kOverLimit) {
      state.over_limit = true;
      sys::Signal(state.news);
    }
    if (flow == Flow::kEnded) source.Reset();
  };
  if (waits[kOut].revents != 0) move(state.out, state.out_flow, state.output);
  if (waits[kErr].revents != 0) move(state.err, state.err_flow, state.error);
  const bool has_target = state.input.valid() || state.in.target() == state.output.get();
  if (!has_target) state.in_flow = Flow::kEnded;  // The terminal hung up.
  if (has_target && waits[kIn].revents != 0) {
    state.in_flow = state.in.Pump();
    // The end of input is the guest's to see; a terminal is not closed by it.
    if (state.in_flow == Flow::kEnded) state.input.Reset();
    if (state.in_flow == Flow::kEnded && state.owns_source) ::shutdown(state.in.source(), SHUT_RD);
  }
  return true;
}

// What the guest wrote is still in the pipes, at most their capacity. Whoever still writes is not waited for.
void Pumps::Drain(State& state) {
  const auto drain = [&](OutputPump& pump, Flow flow, base::UniqueFd& source) {
    const std::uint64_t most = pump.capture().bytes() + Capacity(source.get());
    while (source.valid() && flow != Flow::kEnded && flow != Flow::kOverLimit) {
      const std::uint64_t before = pump.capture().bytes();
      if (state.writers == Writers::kAlive && before >= most && flow != Flow::kWaitForTarget) break;
      flow = pump.Pump();
      if (flow == Flow::kWaitForTarget) {
        if (state.reader == Reader::kHurried) break;
        // A signal that the host program handles is no reason to lose the rest: it is tried again.
        pollfd waits[] = {{pump.target(), POLLOUT, 0}, {state.cancel, POLLIN, 0}};
        state.awaits_reader = true;
        const int ready = ::poll(waits, 2, -1);
        state.awaits_reader = false;
        if ((ready < 0 && errno != EINTR) || waits[1].revents != 0) break;
      } else if (pump.capture().bytes() == before) {
        break;
      }
    }
    source.Reset();
  };
  drain(state.out, state.out_flow, state.output);
  drain(state.err, state.err_flow, state.error);
  state.input.Reset();
}

bool Pumps::Finish(Reader reader, int cancel, Writers writers) {
  State& state = *state_;
  if (writers == Writers::kAlive && !state.begun && !Begin()) return false;
  state.reader = reader;
  state.cancel = cancel;
  state.writers = writers;
  if (!state.begun) {
    const sys::BlockedSigpipe no_sigpipe;
    Drain(state);
  } else if (state.thread.joinable()) {
    sys::Signal(state.stop);
    pollfd waits[] = {{state.done.read.get(), POLLIN, 0}, {cancel, POLLIN, 0}};
    // SECURITY: one who lives may keep the thread for as long as it likes, but not in the name of a slow reader.
    const int patience = writers == Writers::kAlive ? kGraceMs : -1;
    for (int ready = 0; reader == Reader::kAwaited && ready <= 0;) {
      ready = ::poll(waits, 2, patience);
      if (ready == 0 && !state.awaits_reader && !state.telling) break;
    }
    const std::uint64_t until = sys::NowNs() + std::uint64_t{kGraceMs} * 1'000'000;
    while (::poll(waits, 1, kGraceMs) < 0 && sys::NowNs() < until) {
    }
    if (waits[0].revents == 0) state.abandoned = true;
    if (waits[0].revents != 0 || state.telling) {
      state.thread.join();
      state.abandoned = false;
    } else {
      state.thread.detach();
    }
  }
  state.settings.End();
  return !state.abandoned;
}

Output Pumps::TakeOut() { return state_->abandoned ? Output{} : state_->out.capture().Take(); }
Output Pumps::TakeErr() { return state_->abandoned ? Output{} : state_->err.capture().Take(); }

}  // namespace belljar::launch
