// cli/run_verb.h: `belljar run [options] -- command…`.
#pragma once

namespace belljar::cli {

/// argv[0] is "run". Gives the exit status of belljar/result.h's ExitStatus; 125 when the command line is wrong.
int RunVerb(int argc, char** argv);

}  // namespace belljar::cli
