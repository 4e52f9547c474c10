#include "racer.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <sstream>
#include <string_view>
#include <thread>

namespace belljar::bench {
namespace {

[[noreturn]] void Misused(std::string_view what) {
  std::cerr << "racer: " << what << "; bench/run starts this program, see racer.h\n";
  std::exit(2);
}

Out ParseOut(std::string_view word) {
  if (word == "drop") return Out::kDrop;
  if (word == "read") return Out::kRead;
  if (word == "keep") return Out::kKeep;
  if (word == "report") return Out::kReport;
  Misused("unknown --out");
}

std::int64_t CpuNs(int who) {
  rusage usage{};
  getrusage(who, &usage);
  auto ns = [](const timeval& t) { return t.tv_sec * 1'000'000'000LL + t.tv_usec * 1000LL; };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

std::int64_t CpuNs() { return CpuNs(RUSAGE_SELF) + CpuNs(RUSAGE_CHILDREN); }

// Of all CPUs, in ticks of 10 ms: also what launchers, daemons and the kernel's own threads do for a run.
std::int64_t MachineCpuNs() {
  std::ifstream stat("/proc/stat");
  std::string word;
  stat >> word;
  std::int64_t busy = 0;
  constexpr int kIdle = 3, kIoWait = 4, kSteal = 7;
  for (int i = 0; i < kSteal; ++i) {
    std::int64_t ticks = 0;
    stat >> ticks;
    if (i != kIdle && i != kIoWait) busy += ticks;
  }
  return busy * (1'000'000'000LL / sysconf(_SC_CLK_TCK));
}

std::string OneLine(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text.substr(0, 400);
}

// Runs on `jobs` threads for `seconds`; each thread starts the next run when its last is over.
std::string Load(Racer& racer, double seconds, int jobs, bool leak) {
  std::mutex mutex;
  std::vector<std::int64_t> all;
  std::string failure;
  std::atomic<bool> failed = false;
  const std::int64_t cpu_before = CpuNs();
  const std::int64_t machine_before = MachineCpuNs();
  const std::int64_t began = NowNs();
  const auto until = began + static_cast<std::int64_t>(seconds * 1e9);
  std::vector<std::thread> threads;
  for (int i = 0; i < jobs; ++i) {
    threads.emplace_back([&] {
      std::vector<std::int64_t> mine;
      std::string why;
      while (NowNs() < until && !failed) {
        const std::int64_t took = racer.Once(why);
        if (took < 0) {
          failed = true;
          break;
        }
        if (leak) static_cast<void>(open("/dev/null", O_RDONLY | O_CLOEXEC));
        mine.push_back(took);
      }
      const std::lock_guard lock(mutex);
      all.insert(all.end(), mine.begin(), mine.end());
      if (!why.empty()) failure = why;
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::int64_t elapsed = NowNs() - began;
  if (failed || all.empty()) return "failed " + OneLine(failure.empty() ? "no run ended in time" : failure);
  std::ranges::sort(all);
  auto at = [&](double share) { return all[static_cast<std::size_t>(share * static_cast<double>(all.size() - 1))]; };
  std::ostringstream answer;
  answer << "ok " << all.size() << ' ' << static_cast<double>(elapsed) / 1e9 << ' ' << at(0.5) << ' ' << at(0.9) << ' '
         << at(0.99) << ' ' << CpuNs() - cpu_before << ' ' << MachineCpuNs() - machine_before;
  return answer.str();
}

std::string Answer(Racer& racer, const RacerOptions& options, const std::string& line) {
  std::istringstream words(line);
  std::string verb, why;
  words >> verb;
  if (verb == "once") {
    const std::int64_t took = racer.Once(why);
    return took < 0 ? "failed " + OneLine(why) : "ok " + std::to_string(took);
  }
  if (verb == "load") {
    double seconds = 1;
    int jobs = 1;
    words >> seconds >> jobs;
    return Load(racer, seconds, jobs, options.leak);
  }
  if (verb == "keep") {
    int count = 0;
    words >> count;
    return racer.Keep(count, why) ? "ok " + std::to_string(count) : "failed " + OneLine(why);
  }
  if (verb == "drop") {
    racer.Drop();
    return "ok 0";
  }
  return "failed unknown command";
}

}  // namespace

RacerOptions ReadOptions(int argc, char** argv) {
  RacerOptions options;
  int i = 1;
  for (; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    const std::string_view name = argv[i];
    if (name == "--leak") {
      options.leak = true;
      continue;
    }
    if (i + 1 >= argc) Misused("an option without its value");
    const char* value = argv[++i];
    if (name == "--mode") {
      options.mode = value;
    } else if (name == "--out") {
      options.out = ParseOut(value);
    } else if (name == "--mount") {
      options.mount = value;
    } else if (name == "--ballast") {
      options.ballast_mb = std::atoi(value);
    } else {
      Misused("unknown option");
    }
  }
  options.argv.assign(argv + std::min(i + 1, argc), argv + argc);
  if (options.argv.empty()) Misused("no command after --");
  return options;
}

std::int64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

int Serve(Racer& racer, const RacerOptions& options) {
  // Touched, not only reserved: what has to be copied or shared when a process is made is the table of its pages.
  const std::size_t ballast_size = static_cast<std::size_t>(options.ballast_mb) << 20;
  const std::unique_ptr<char[]> ballast(new char[ballast_size + 1]);
  std::memset(ballast.get(), 1, ballast_size + 1);
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << Answer(racer, options, line) << '\n' << std::flush;
  }
  return ballast[0] == 1 ? 0 : 1;
}

}  // namespace belljar::bench
