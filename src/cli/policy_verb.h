// cli/policy_verb.h: `belljar policy check|show|schema|profiles`.
#pragma once

namespace belljar::cli {

/// argv[0] is "policy". Gives the exit status: 0 right, 1 the policy is wrong, 2 the command line is wrong.
int PolicyVerb(int argc, char** argv);

}  // namespace belljar::cli
