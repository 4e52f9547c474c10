// corpus.h: what the parts of belljar-corpus that are no attacks share.
#pragma once

#include "attack.h"

// Runs it and prints its outcome; the exit status of `run`.
int run_attack(const struct attack* attack, const struct stage* stage);
// fence.c: `belljar-corpus fence`
int run_fenced(const struct attack* attack, const struct stage* stage);
// stage.c: `belljar-corpus stage` and the process of the host that it shows to attacks, `belljar-corpus victim`
int keep_stage(const struct stage* stage);
int be_victim(void);
