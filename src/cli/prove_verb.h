// cli/prove_verb.h: `belljar prove` runs the containment corpus on the user's own machine.
#pragma once

namespace belljar::cli {

int ProveVerb(int argc, char** argv);

}  // namespace belljar::cli
