#include "prove/bystander.h"

#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "sys/pipe.h"

namespace belljar::prove {
namespace {

constexpr int kUnhurt = 42;

// A command that goes beyond what all of a sandbox may have ends it with all commands.
bool EndsTheSandbox(Verdict verdict) {
  switch (verdict) {
    case Verdict::kCpuTime:
    case Verdict::kOutOfMemory:
    case Verdict::kProcessLimit:
    case Verdict::kDiskLimit: return true;
    default: return false;
  }
}

}  // namespace

Expected<std::unique_ptr<Bystander>> Bystander::Start(LiveSandbox& sandbox) {
  auto input = sys::MakePipe("make a pipe for a bystander");
  if (!input) return std::unexpected(input.error());
  auto output = sys::MakePipe("make a pipe for a bystander");
  if (!output) return std::unexpected(output.error());
  std::unique_ptr<Bystander> made(new Bystander);
  made->input_ = std::move(input->write);
  made->its_in_ = std::move(input->read);
  made->its_out_ = std::move(output->write);
  made->thread_ = std::thread([own = made.get(), &sandbox] { own->Run(sandbox); });
  char byte = 0;
  ssize_t got = 0;
  while ((got = ::read(output->read.get(), &byte, 1)) < 0 && errno == EINTR) {
  }
  if (got == 1) return made;
  made->thread_.join();
  if (!*made->result_) return std::unexpected((*made->result_).error());
  return std::unexpected(Error{.step = "start a bystander", .message = (*made->result_)->message, .hint = {}});
}

void Bystander::Run(LiveSandbox& sandbox) {
  const std::string script = fmt::format("echo; read -r line; exit {}", kUnhurt);
  result_ = sandbox.Run({"/bin/sh", "-c", script},
                        {.streams = StreamMode::kPassThrough,
                         .descriptors = {.in = its_in_.get(), .out = its_out_.get(), .err = its_out_.get()}});
  its_out_.Reset();
}

std::string Bystander::Damage(const Result& attack) {
  input_.Reset();
  thread_.join();
  if (!*result_) return (*result_).error().Text();
  const Result& own = **result_;
  if (own.verdict == Verdict::kExited && own.exit_code == kUnhurt) return {};
  if (EndsTheSandbox(attack.verdict) && own.verdict == attack.verdict) return {};
  return fmt::format("another command of the sandbox came to harm: {} {}{}", Name(own.verdict),
                     own.exit_code ? fmt::format("{} ", *own.exit_code) : std::string(), own.message);
}

Bystander::~Bystander() {
  input_.Reset();
  if (thread_.joinable()) thread_.join();
}

}  // namespace belljar::prove
