// cli/explain_verb.h: `belljar explain [options] -- command…`.
#pragma once

namespace belljar::cli {

/// argv[0] is "explain". Gives 0, or 125 when there is no plan for it here.
int ExplainVerb(int argc, char** argv);

}  // namespace belljar::cli
