// doctor/probe_filters.h: Landlock and seccomp, each put to work in a throw-away child.
#pragma once

#include "doctor/probe.h"

namespace belljar::doctor {

/// The Landlock ABI of this kernel; 0 when it has none or has it switched off.
int LandlockAbi();

/// What an ABI can restrict, as words: "files, refer, truncate, tcp, ioctl, scopes, audit".
std::string DescribeLandlockAbi(int abi);

/// "landlock", "landlock tcp", "landlock scopes".
Probes ProbeLandlock();

/// "seccomp filter", "seccomp kill", "seccomp tsync", "seccomp notification".
Probes ProbeSeccomp();

}  // namespace belljar::doctor
