// cli/doctor_verb.h: `belljar doctor [--json]`: what this host can do for Belljar, tried out.
#pragma once

namespace belljar::cli {

/// argv[0] is the verb. Returns the exit status: 0 when level kernel is reachable here, 1 when not, 2 on bad options.
int DoctorVerb(int argc, char** argv);

}  // namespace belljar::cli
