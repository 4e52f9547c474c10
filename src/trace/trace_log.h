// trace/trace_log.h: what a traced run asked for and did not get (or, to learn from, what it used): aggregated, and
// bounded in memory whatever the guest does.
//
// A value; one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plan/traced_calls.h"

namespace belljar::trace {

/// One operation on one path or address with one outcome.
struct Access {
  std::string operation;  ///< "open", "connect" …
  plan::Use use = plan::Use::kLook;
  std::string given;     ///< As the guest gave it.
  std::string resolved;  ///< Absolute and without links, as far as could be told; the address for a network operation.
  int error = 0;         ///< errno; 0: it worked.
  std::uint64_t count = 1;
  std::uint64_t last = 0;        ///< When it came last, counted in records.
  bool found_elsewhere = false;  ///< A missing name that was then found in another directory: a search, no lack.
};

/// What a traced run asked for.
struct Record {
  std::vector<Access> accesses;
  std::uint64_t left_out = 0;  ///< Accesses that found no room.
};

enum class TraceDepth : std::uint8_t {
  kOff,
  kRefusals,  ///< What failed.
  kUses,      ///< What worked as well.
};

struct TraceBounds {
  std::size_t entries = 4096;
  std::size_t bytes = 1 << 20;
};

/// Whether an errno means refused or missing. Anything else is between the guest and the kernel.
bool IsRefusal(int error);
bool IsNetwork(plan::Use use);

class TraceLog {
 public:
  explicit TraceLog(TraceBounds bounds = {}) : bounds_(bounds) {}

  /// Counts what is known already: the place a relative path starts at is part of it. Returns false when this is new,
  /// and then Add has to follow.
  bool Count(std::string_view operation, plan::Use use, std::string_view base, std::string_view given, int error);
  /// False when it is only counted as left out, since there are too many.
  bool HasRoom() const { return accesses_.size() < bounds_.entries && bytes_ < bounds_.bytes; }
  void Add(std::string_view operation, plan::Use use, std::string_view base, std::string_view given,
           std::string resolved, int error);
  /// `given` was there: earlier searches for the same name in other places were no lack.
  void NoteFound(plan::Use use, std::string_view given);

  const std::vector<Access>& accesses() const { return accesses_; }
  Record Take() { return {.accesses = std::move(accesses_), .left_out = left_out_}; }
  /// How many found no room.
  std::uint64_t left_out() const { return left_out_; }

 private:
  TraceBounds bounds_;
  std::vector<Access> accesses_;
  std::unordered_map<std::string, std::size_t> known_;
  std::unordered_multimap<std::string, std::size_t> missing_;  // by kind of use and last part of the name
  std::string key_;                                            // kept for its memory
  std::size_t bytes_ = 0;
  std::uint64_t records_ = 0;
  std::uint64_t left_out_ = 0;
};

}  // namespace belljar::trace
