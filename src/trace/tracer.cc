#include "trace/tracer.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <future>

#include <fmt/format.h>

#include "sys/files.h"
#include "sys/process.h"

namespace belljar::trace {
namespace {

constexpr TraceBounds kUsesBounds = {.entries = 65'536, .bytes = 32 << 20};
constexpr std::size_t kShortPath = 256;  // Most paths; the rest is read only where this is not enough.
constexpr std::size_t kLongestAddress = 128;
constexpr int kLinksOfOnePath = 256;
constexpr std::uint16_t kNameServer = 53;

std::string WhyNot(int error) {
  if (error != EPERM) return std::strerror(error);
  const auto scope = sys::ReadSmallFile("/proc/sys/kernel/yama/ptrace_scope", 16);
  if (scope && scope->starts_with('3')) return "ptrace is switched off on this host (kernel.yama.ptrace_scope = 3)";
  if (scope && scope->starts_with('2')) return "ptrace is for administrators only here (kernel.yama.ptrace_scope = 2)";
  return "the kernel does not allow ptrace here: a security module, or a container without CAP_SYS_PTRACE";
}

std::uint64_t Argument(const sys::TracedRegisters& registers, std::int8_t index) {
  return registers.arguments.at(static_cast<std::uint8_t>(index));
}

int DirectoryArgument(const sys::TracedRegisters& registers, std::int8_t index) {
  return index < 0 ? AT_FDCWD : static_cast<int>(Argument(registers, index));
}

}  // namespace

Tracer::Tracer(TraceDepth depth)
    : depth_(depth), log_(depth == TraceDepth::kUses ? kUsesBounds : TraceBounds{}), buffer_(PATH_MAX) {}

Expected<std::unique_ptr<Tracer>> Tracer::Start(pid_t pid, TraceDepth depth) {
  const auto fail = [](std::string message, int code) {
    return std::unexpected(Error{
        .step = "trace the command", .message = std::move(message), .hint = "run it without --trace", .code = code});
  };
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(std::strerror(errno), errno);
  const base::UniqueFd read_end(ends[0]);
  std::unique_ptr<Tracer> tracer(new Tracer(depth));
  tracer->lifeline_.Reset(ends[1]);
  std::promise<int> seized;
  auto answer = seized.get_future();
  {
    const sys::BlockedSignals blocked;  // The thread starts with them blocked: the host program's handlers are not its.
    try {
      tracer->thread_ = std::thread([&tracer = *tracer, &seized, pid, lifeline = read_end.get()] {
        tracer.waker_ = sys::StartWaker(lifeline);
        const int error = tracer.waker_ < 0 ? errno : sys::Seize(pid);
        seized.set_value(error);  // `seized` is gone after this.
        tracer.Loop();
      });
    } catch (const std::system_error& error) {
      return fail(error.what(), error.code().value());
    }
  }
  const int error = answer.get();
  if (error != 0) {
    tracer->Stop();
    return fail(WhyNot(error), error);
  }
  return tracer;
}

void Tracer::Stop() {
  lifeline_.Reset();
  if (thread_.joinable()) thread_.join();
  root_.Reset();
}

void Tracer::Loop() {
  while (const auto stop = sys::WaitForTraceStop()) {
    if (stop->pid == waker_) return;  // What is left dies with this thread.
    Handle(*stop);
  }
}

void Tracer::Handle(const sys::TraceStop& stop) {
  using Kind = sys::TraceStop::Kind;
  switch (stop.kind) {
    case Kind::kGone: pending_.erase(stop.pid); return;
    case Kind::kCall: {
      // Before its own program runs the command is a copy of init, of which nothing is to be told.
      const bool wanted = begun_ && Begin(stop.pid, pending_[stop.pid]);
      return sys::ResumeTracee(stop.pid, wanted ? sys::Resume::kToCallEnd : sys::Resume::kRun);
    }
    case Kind::kCallEnd: {
      const auto result = sys::ReadCallResult(stop.pid);
      const auto found = pending_.find(stop.pid);
      if (result && found != pending_.end()) End(stop.pid, found->second, *result);
      return sys::ResumeTracee(stop.pid, sys::Resume::kRun);
    }
    case Kind::kExec: {
      begun_ = true;
      if (!root_.valid()) root_.Reset(::open(fmt::format("/proc/{}/root", stop.pid).c_str(), O_PATH | O_CLOEXEC));
      const auto found = pending_.find(sys::FormerThread(stop.pid));
      if (found != pending_.end()) {
        const Pending done = std::move(found->second);
        pending_.erase(found);
        if (done.call != nullptr && done.use == plan::Use::kExecute) End(stop.pid, done, 0);
      }
      return sys::ResumeTracee(stop.pid, sys::Resume::kRun);
    }
    case Kind::kSignal: return sys::ResumeTracee(stop.pid, sys::Resume::kRun, stop.signal);
    case Kind::kGroupStop: return sys::ResumeTracee(stop.pid, sys::Resume::kListen);
    case Kind::kOther: return sys::ResumeTracee(stop.pid, sys::Resume::kRun);
  }
}

std::string Tracer::ReadPath(pid_t pid, std::uint64_t address) {
  for (const std::size_t size : {kShortPath, buffer_.size()}) {
    const std::size_t got = sys::ReadMemory(pid, address, std::span(buffer_).first(size));
    if (const auto text = CString(std::span<const char>(buffer_).first(got))) return std::string(*text);
    if (got < size) break;  // It runs into memory that is not there.
  }
  return {};
}

void Tracer::ReadPaths(pid_t pid, const sys::TracedRegisters& registers, Pending& pending) {
  const plan::PathArgument* const arguments[] = {&pending.call->first, &pending.call->second};
  for (std::size_t i = 0; i < std::size(arguments); ++i) {
    pending.paths[i].clear();
    if (arguments[i]->path < 0) continue;
    pending.directories[i] = DirectoryArgument(registers, arguments[i]->directory);
    pending.paths[i] = ReadPath(pid, Argument(registers, arguments[i]->path));
  }
  if (pending.call->operation != "open" || pending.call->flags < 0) return;
  std::uint64_t flags = Argument(registers, pending.call->flags);
  if (pending.call->flags_struct == 1) {
    std::array<char, sizeof flags> bytes{};
    (void)sys::ReadMemory(pid, flags, bytes);
    std::memcpy(&flags, bytes.data(), sizeof flags);
  }
  pending.use = plan::UseOfOpen(flags);
}

void Tracer::ReadAddress(pid_t pid, const sys::TracedRegisters& registers, Pending& pending) {
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  if (pending.call->message >= 0) {
    msghdr head{};
    std::array<char, sizeof head> bytes{};
    const auto at = Argument(registers, pending.call->message);
    if (sys::ReadMemory(pid, at, bytes) != bytes.size()) return;
    std::memcpy(&head, bytes.data(), sizeof head);
    address = reinterpret_cast<std::uint64_t>(head.msg_name);
    length = head.msg_namelen;
  } else {
    address = Argument(registers, pending.call->address);
    length = static_cast<std::uint32_t>(Argument(registers, pending.call->length));
  }
  if (address == 0) return;
  std::array<char, kLongestAddress> bytes{};
  const std::size_t got =
      sys::ReadMemory(pid, address, std::span(bytes).first(std::min<std::size_t>(length, bytes.size())));
  pending.address = DecodeAddress(std::span<const char>(bytes).first(got)).value_or(SocketAddress{});
}

// Reads what the call is about; false when there is nothing to record, whatever comes of it.
bool Tracer::Begin(pid_t pid, Pending& pending) {
  pending.call = nullptr;
  const auto registers = sys::ReadCall(pid);
  if (!registers) return false;
  pending.call = plan::FindTraced(registers->number);
  if (pending.call == nullptr) return false;
  pending.use = pending.call->use;
  pending.address = {};
  for (std::string& path : pending.paths) path.clear();
  if (IsNetwork(pending.use)) {
    ReadAddress(pid, *registers, pending);
    return !pending.address.text.empty();
  }
  ReadPaths(pid, *registers, pending);
  return !pending.paths[0].empty() || !pending.paths[1].empty();
}

void Tracer::End(pid_t pid, const Pending& pending, std::int64_t result) {
  if (pending.call == nullptr) return;
  const int error = result < 0 && result >= -4095 ? static_cast<int>(-result) : 0;
  if (error != 0 && !IsRefusal(error)) return;
  if (IsNetwork(pending.use)) return RecordAddress(pending, error);
  if (error == 0) {
    for (const std::string& path : pending.paths) {
      if (!path.empty()) log_.NoteFound(pending.use, path);
    }
    if (depth_ != TraceDepth::kUses) return;
  }
  for (int i = 0; i < 2; ++i) {
    if (!pending.paths[i].empty()) Record(pid, pending, i, error);
  }
}

void Tracer::Record(pid_t pid, const Pending& pending, int index, int error) {
  const std::string& given = pending.paths[index];
  std::string base;
  if (!given.starts_with('/')) {
    const int directory = pending.directories[index];
    const std::string link =
        directory == AT_FDCWD ? fmt::format("/proc/{}/cwd", pid) : fmt::format("/proc/{}/fd/{}", pid, directory);
    base = sys::ReadLink(link).value_or("/");
    if (!base.starts_with('/')) return;  // A descriptor of something else than a directory.
  }
  // The old name of a rename goes, the new one comes; a link leaves the old one alone.
  plan::Use use = pending.use;
  if (pending.call->second.path >= 0 && index == 0) {
    use = pending.call->operation == "rename" ? plan::Use::kRemove : plan::Use::kRead;
  }
  if (log_.Count(pending.call->operation, use, base, given, error)) return;
  const bool names_itself = use == plan::Use::kCreate || use == plan::Use::kRemove;
  const bool keeps = names_itself && pending.call->operation != "open";
  std::string resolved = log_.HasRoom() ? Resolve(base, given, keeps ? LastLink::kKeep : LastLink::kFollow) : "";
  log_.Add(pending.call->operation, use, base, given, std::move(resolved), error);
}

// A name can't be looked up without a network, and no call says which: that a name server was asked is told instead.
void Tracer::RecordAddress(const Pending& pending, int error) {
  const bool asks_names = pending.address.port == kNameServer && pending.use == plan::Use::kConnect;
  if (error == 0 && !asks_names && depth_ != TraceDepth::kUses) return;
  if (log_.Count(pending.call->operation, pending.use, "", pending.address.text, error)) return;
  log_.Add(pending.call->operation, pending.use, "", pending.address.text, pending.address.path, error);
}

std::string Tracer::Resolve(std::string_view base, const std::string& given, LastLink last) {
  int budget = std::min(link_budget_, root_.valid() ? kLinksOfOnePath : 0);
  const int before = budget;
  const LinkReader read_link = [&](const std::string& path) -> std::optional<std::string> {
    if (sys::IsWithin(path, "/proc")) return std::nullopt;  // Its links mean something else to every reader.
    return sys::ReadLinkInRoot(root_.get(), path);
  };
  std::string resolved = ResolvePath(base, given, last, read_link, budget);
  link_budget_ -= before - budget;
  return resolved;
}

}  // namespace belljar::trace
