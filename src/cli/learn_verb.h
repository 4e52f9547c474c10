// cli/learn_verb.h: belljar learn
#pragma once

namespace belljar::cli {

int LearnVerb(int argc, char** argv);

}  // namespace belljar::cli
