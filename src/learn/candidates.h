// learn/candidates.h: from what an example used to the grants that it may need. A pure function but for the questions
// that its scene answers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <belljar/policy.h>

#include "sys/files.h"
#include "trace/trace_log.h"

namespace belljar::learn {

/// One mount, and why.
struct Grant {
  Mount mount;
  std::string why;       ///< "open /data/x.csv", "12 files, as open /data/1.csv"
  bool durable = false;  ///< Something was written there that is still there: not to be left out, whatever trials say.
};

struct CandidateScene {
  std::string home;                                            ///< The caller's.
  std::string private_directory;                               ///< Of the audit run; not the example's.
  std::function<bool(const std::string& path)> shown;          ///< In the sandbox without any grant.
  std::function<sys::FileKind(const std::string& path)> kind;  ///< Now, on the host; links are not followed.
  std::function<bool(const std::string& path)> made_by_run;    ///< Or gone.
};

struct Candidates {
  std::vector<Grant> files;            ///< What was read, executed, written.
  std::vector<Grant> directories;      ///< What was only listed or looked at: needed by few programs.
  std::vector<std::string> withheld;   ///< "open /home/a/.ssh/id: holds secrets": no grant without a human.
  std::vector<std::string> addresses;  ///< "connect 10.0.0.1:443"
};

Candidates FindCandidates(const std::vector<trace::Access>& accesses, const CandidateScene& scene);

/// Without those that another one includes.
void DropCovered(std::vector<Grant>& grants);

}  // namespace belljar::learn
