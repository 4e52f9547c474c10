#include "trace/trace_log.h"

#include <cerrno>

#include "trace/trace_path.h"

namespace belljar::trace {
namespace {

bool IsMissing(int error) { return error == ENOENT || error == ENOTDIR; }

// Programs look (stat, access) before they read: for a search it is all the same.
char KindOf(plan::Use use) {
  switch (use) {
    case plan::Use::kLook:
    case plan::Use::kRead: return 'r';
    case plan::Use::kExecute: return 'x';
    default: return 'w';
  }
}

void MakeKey(std::string& key, std::string_view operation, plan::Use use, std::string_view base, std::string_view given,
             int error) {
  key.assign(operation).push_back(static_cast<char>('0' + static_cast<int>(use)));
  key.append(std::to_string(error)).push_back('\0');
  key.append(base).push_back('\0');
  key.append(given);
}

}  // namespace

bool IsRefusal(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case EXDEV:
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ECONNREFUSED:
    case EADDRNOTAVAIL:
    case ENETDOWN: return true;
    default: return false;
  }
}

bool IsNetwork(plan::Use use) { return use == plan::Use::kConnect || use == plan::Use::kBind; }

bool TraceLog::Count(std::string_view operation, plan::Use use, std::string_view base, std::string_view given,
                     int error) {
  ++records_;
  MakeKey(key_, operation, use, base, given, error);
  const auto found = known_.find(key_);
  if (found == known_.end()) return false;
  Access& access = accesses_[found->second];
  ++access.count;
  access.last = records_;
  access.found_elsewhere = false;  // Asked for again although it was found elsewhere: it is wanted here.
  return true;
}

void TraceLog::Add(std::string_view operation, plan::Use use, std::string_view base, std::string_view given,
                   std::string resolved, int error) {
  if (!HasRoom()) {
    ++left_out_;
    return;
  }
  MakeKey(key_, operation, use, base, given, error);
  bytes_ += key_.size() + given.size() + resolved.size() + sizeof(Access);
  known_.emplace(key_, accesses_.size());
  if (IsMissing(error) && !IsNetwork(use)) {
    std::string name(1, KindOf(use));
    name.append(BaseName(given));
    bytes_ += name.size();
    missing_.emplace(std::move(name), accesses_.size());
  }
  accesses_.push_back({.operation = std::string(operation),
                       .use = use,
                       .given = std::string(given),
                       .resolved = std::move(resolved),
                       .error = error,
                       .count = 1,
                       .last = records_});
}

void TraceLog::NoteFound(plan::Use use, std::string_view given) {
  if (missing_.empty()) return;
  key_.assign(1, KindOf(use)).append(BaseName(given));
  const auto [first, end] = missing_.equal_range(key_);
  for (auto at = first; at != end; ++at) {
    Access& access = accesses_[at->second];
    if (access.given != given) access.found_elsewhere = true;
  }
}

}  // namespace belljar::trace
