// Runs commands through the library, from one engine that stays open as in a long-lived host program.
#include "racer.h"

#include <belljar/belljar.h>

#include <charconv>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace belljar::bench {
namespace {

// What went wrong first: an answer is cut off somewhere.
std::string Told(const Result& result) { return result.message + ": " + ToJson(result); }

class LibraryRacer : public Racer {
 public:
  LibraryRacer(Engine engine, const RacerOptions& options) : engine_(std::move(engine)), options_(options) {
    if (options_.out == Out::kKeep) policy_.OutputLimit("128M");
    if (!options_.mount.empty()) policy_.ReadOnly(options_.mount, "/bench");
  }

  std::int64_t Once(std::string& why) override {
    if (options_.mode == "warm") {  // A ready one is what is timed, not the wait for it.
      if (auto ready = engine_.Prepare(policy_, 2); !ready) return Failed(why, ready.error().Text());
    }
    const std::int64_t began = NowNs();
    Expected<Result> result = Run({});
    const std::int64_t took = NowNs() - began;
    if (!result) return Failed(why, result.error().Text());
    if (!result->ok()) return Failed(why, Told(*result));
    if (options_.out != Out::kReport) return took;
    std::int64_t reported = -1;
    const std::string& text = result->out.data;
    std::from_chars(text.data(), text.data() + text.size(), reported);
    if (reported < 0) why = "no number in its output: " + text;
    return reported;
  }

  // A thread each, as a host program that calls Run has. Live sandboxes need none: they have run a command and wait.
  bool Keep(int count, std::string& why) override {
    if (options_.mode == "exec") return KeepLive(count, why);
    auto token = CancelToken::Make();
    if (!token) {
      Failed(why, token.error().Text());
      return false;
    }
    cancel_.emplace(std::move(*token));
    for (int i = 0; i < count; ++i) {
      kept_.emplace_back([this] { static_cast<void>(Run({.cancel = &*cancel_})); });
    }
    return true;
  }

  void Drop() override {
    if (cancel_) cancel_->Cancel();
    kept_.clear();
    idle_.clear();
  }

 private:
  bool KeepLive(int count, std::string& why) {
    for (int i = 0; i < count; ++i) {
      Expected<LiveSandbox> opened = engine_.Open(policy_);
      if (!opened) {
        why = opened.error().Text();
        return false;
      }
      idle_.push_back(std::move(*opened));
      const Expected<Result> result = idle_.back().Run(options_.argv);
      if (!result || !result->ok()) {
        why = result ? Told(*result) : result.error().Text();
        return false;
      }
    }
    return true;
  }

  Expected<Result> Run(const RunOptions& how) {
    if (options_.mode != "exec") return engine_.Run(policy_, options_.argv, how);
    std::call_once(opened_, [this] { live_ = engine_.Open(policy_); });
    if (!*live_) return std::unexpected((*live_).error());
    return (*live_)->Run(options_.argv, how);
  }

  static std::int64_t Failed(std::string& why, std::string text) {
    why = std::move(text);
    return -1;
  }

  Engine engine_;
  std::once_flag opened_;
  std::optional<Expected<LiveSandbox>> live_;
  RacerOptions options_;
  Policy policy_;
  std::optional<CancelToken> cancel_;
  std::vector<std::jthread> kept_;
  std::vector<LiveSandbox> idle_;
};

/// The racer for a mode; nothing where this library can't do it yet. New ways to run get a class and a line here.
std::unique_ptr<Racer> MakeRacer(Engine engine, const RacerOptions& options) {
  if (options.mode != "cold" && options.mode != "warm" && options.mode != "exec") return nullptr;
  return std::make_unique<LibraryRacer>(std::move(engine), options);
}

}  // namespace
}  // namespace belljar::bench

int main(int argc, char** argv) {
  constexpr int kNotThereYet = 3;  // bench/run shows the row and says so
  const auto options = belljar::bench::ReadOptions(argc, argv);
  auto engine = belljar::Engine::Open({.warm = options.mode == "warm" ? 4U : 0U});
  if (!engine) return std::cerr << engine.error().Text() << '\n', 1;
  const auto racer = belljar::bench::MakeRacer(std::move(*engine), options);
  if (racer == nullptr) return kNotThereYet;
  return belljar::bench::Serve(*racer, options);
}
