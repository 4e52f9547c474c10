// doctor/probe_namespaces.h: each kind of namespace, made for real in a throw-away child.
#pragma once

#include "doctor/probe.h"
#include "doctor/probe_userns.h"

namespace belljar::doctor {

/// Ok when everything that the namespace form needs from namespaces is there for an unprivileged caller:
/// ProbeUserNamespace and a fresh /proc, which containers with a partly covered /proc forbid. Else an Error with the
/// reason and the fix.
Expected<void> ProbeNamespaceForm();

struct NamespaceFindings {
  Way way = Way::kNone;  ///< How the other probes come to namespaces.
  Probes probes;
};

/// "user namespace", "mount namespace", "pid namespace", "network namespace", "ipc namespace", "uts namespace",
/// "cgroup namespace", "time namespace", "fresh /proc".
NamespaceFindings ProbeNamespaces();

}  // namespace belljar::doctor
