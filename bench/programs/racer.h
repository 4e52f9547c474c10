// racer.h: what every racer of bench/run speaks. A racer is a process that stays up and does one kind of run, whenever
// it is told to on standard input, and measures it itself, so that nothing of the driver's own time is in a number.
//
//   once                -> "ok NANOSECONDS"
//   load SECONDS JOBS   -> "ok RUNS SECONDS P50 P90 P99 CPU MACHINE" (nanoseconds; CPU is that of all runs together, of
//                          the racer and its ended children, MACHINE that of everybody)
//   keep COUNT          -> "ok COUNT": that many sandboxes are alive now
//   drop                -> "ok 0": and now they are gone
//
// Anything that goes wrong is answered by "failed REASON" on one line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace belljar::bench {

/// What becomes of the standard output of a run.
enum class Out : std::uint8_t {
  kDrop,    ///< Nobody reads it.
  kRead,    ///< Read and thrown away.
  kKeep,    ///< Read and kept in memory.
  kReport,  ///< The program measured itself: its output is the number of nanoseconds.
};

class Racer {
 public:
  virtual ~Racer() = default;
  /// One run; returns its nanoseconds, or a negative number with `why`. Called from many threads at once under load.
  virtual std::int64_t Once(std::string& why) = 0;
  virtual bool Keep(int count, std::string& why) = 0;
  virtual void Drop() = 0;
};

struct RacerOptions {
  std::string mode;  ///< spawn, clone; cold, warm, exec.
  Out out = Out::kDrop;
  std::string mount;   ///< A directory of the host that a library run sees as /bench.
  int ballast_mb = 0;  ///< Memory that the racer itself has touched, as a caller with a large heap has.
  bool leak = false;   ///< Loses a descriptor each run: what a soak must find.
  std::vector<std::string> argv;
};

/// Reads "--mode M --out O --mount DIR --ballast MB --leak -- ARGV"; ends the program when it is called wrongly.
RacerOptions ReadOptions(int argc, char** argv);

std::int64_t NowNs();

/// Answers standard input until it ends; returns the exit status.
int Serve(Racer& racer, const RacerOptions& options);

}  // namespace belljar::bench
