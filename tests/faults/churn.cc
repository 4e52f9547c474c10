// Runs commands of every kind through the library, one after the other in one process, so that its memory and its
// descriptors can be watched:
//
//   churn RUNS GUESTS
//
// Prints a line of JSON every hundredth of the way: runs so far, resident kilobytes, open descriptors; at the end the
// verdicts. Ends with 1 when a verdict is not one that its run may have.
#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <belljar/engine.h>

namespace {

using belljar::Policy;
using belljar::Verdict;

struct Kind {
  const char* name;
  std::function<Policy()> policy;
  std::vector<std::string> argv;
  std::vector<Verdict> allowed;
};

// limits: short, so that 10,000 of them end today.
std::vector<Kind> Kinds(const std::string& guests) {
  const auto with_guests = [guests] { return Policy().ReadOnly(guests, "/guests"); };
  const auto process = [] { return Policy().AtLevel("process"); };
  return {
      {"ok", [] { return Policy(); }, {"/bin/true"}, {Verdict::kExited}},
      {"output", [] { return Policy(); }, {"/bin/sh", "-c", "echo out; echo err >&2; exit 3"}, {Verdict::kExited}},
      {"timeout", [] { return Policy().Wall("30ms"); }, {"/bin/sh", "-c", "sleep 9 & sleep 9"}, {Verdict::kTimedOut}},
      {"crash", with_guests, {"/guests/crash", "fault"}, {Verdict::kSignaled}},
      {"memory",
       [=] { return with_guests().Memory("24M"); },
       {"/guests/memory", "anonymous", "200"},
       {Verdict::kOutOfMemory}},
      {"bomb",
       [=] { return with_guests().Processes("16").Wall("120ms"); },
       {"/guests/fork_bomb", "churn"},
       {Verdict::kProcessLimit, Verdict::kTimedOut}},
      {"flood",
       [=] { return with_guests().Wall("40ms").OutputLimit("32K"); },
       {"/guests/flood", "binary", "0"},
       {Verdict::kTimedOut}},
      {"disk",
       [] { return Policy().Disk("1M"); },
       {"/bin/sh", "-c", "head -c 3M /dev/zero > f"},
       {Verdict::kDiskLimit}},
      {"refused", [] { return Policy().Set("network.mode", "full"); }, {"/bin/true"}, {Verdict::kRefused}},
      {"missing", [] { return Policy(); }, {"/no/such/program"}, {Verdict::kExited}},
      {"process", process, {"/bin/sh", "-c", "mkdir -p a/b; echo x > a/b/f; chmod 0 a/b"}, {Verdict::kExited}},
      {"process timeout",
       [=] { return process().Wall("30ms"); },
       {"/bin/sh", "-c", "setsid sleep 9 & sleep 9"},
       {Verdict::kTimedOut}},
  };
}

long ResidentKilobytes() {
  std::ifstream file("/proc/self/statm");
  long size = 0;
  long resident = 0;
  file >> size >> resident;
  return resident * (::sysconf(_SC_PAGESIZE) / 1024);
}

int OpenDescriptors() {
  int count = 0;
  DIR* const directory = ::opendir("/proc/self/fd");
  while (directory != nullptr && ::readdir(directory) != nullptr) ++count;
  if (directory != nullptr) ::closedir(directory);
  return count - 3;  // ".", ".." and the directory itself.
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int runs = std::atoi(argv[1]);
  auto engine = belljar::Engine::Open();
  if (!engine) {
    std::fprintf(stderr, "%s\n", engine.error().Text().c_str());
    return 2;
  }
  const std::vector<Kind> kinds = Kinds(argv[2]);
  std::mt19937 lot(1);
  std::map<std::string, int> verdicts;
  int wrong = 0;
  for (int i = 0; i < runs; ++i) {
    const Kind& kind = kinds[lot() % kinds.size()];
    const auto result = engine->Run(kind.policy(), kind.argv);
    const Verdict verdict = result ? result->verdict : Verdict::kRefused;
    ++verdicts[std::string(belljar::Name(verdict))];
    if (std::find(kind.allowed.begin(), kind.allowed.end(), verdict) == kind.allowed.end() && ++wrong <= 10) {
      std::fprintf(stderr, "%s: %s, %s\n", kind.name, std::string(belljar::Name(verdict)).c_str(),
                   result ? result->message.c_str() : result.error().Text().c_str());
    }
    if ((i + 1) % std::max(1, runs / 100) == 0) {
      std::printf("{\"runs\": %d, \"resident\": %ld, \"descriptors\": %d}\n", i + 1, ResidentKilobytes(),
                  OpenDescriptors());
      std::fflush(stdout);
    }
  }
  std::printf("{\"wrong\": %d", wrong);
  for (const auto& [name, count] : verdicts) std::printf(", \"%s\": %d", name.c_str(), count);
  std::printf("}\n");
  return wrong == 0 ? 0 : 1;
}
