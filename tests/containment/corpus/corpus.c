// belljar-corpus: the attacks of the containment corpus in one static program.
//
//   belljar-corpus list                    one line a case: id, name, traits, guards, what it tries; tabs between
//   belljar-corpus run ID [key=value…]     runs one, prints its outcome; keys are the fields of struct stage
//   belljar-corpus fence ID [key=value…]   the same as a control: where it may work and yet hurts nobody
//   belljar-corpus stage key=value…        keeps what the attacks reach for
//
// Exit status of run: 0 worked, 10 refused, 11 unable; 2 for wrong use. `belljar prove` is its driver.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "corpus.h"

#define CASE(name) extern const struct attack name;
#include "cases.def"
#undef CASE

static const struct attack* const attacks[] = {
#define CASE(name) &name,
#include "cases.def"
#undef CASE
};
enum { kAttacks = sizeof attacks / sizeof *attacks };

static enum outcome say(struct attempt* attempt, enum outcome outcome, const char* text) {
  snprintf(attempt->detail, sizeof attempt->detail, "%s", text);
  return outcome;
}

enum outcome refused(struct attempt* attempt, const char* by) {
  attempt->error = errno;
  return say(attempt, REFUSED, by);
}
enum outcome worked(struct attempt* attempt, const char* what) { return say(attempt, WORKED, what); }
enum outcome unable(struct attempt* attempt, const char* why) { return say(attempt, UNABLE, why); }

static int list(void) {
  for (int i = 0; i < kAttacks; ++i) {
    const struct attack* a = attacks[i];
    printf("%s\t%s\t%u\t%s\t%s\n", a->id, a->name, a->traits, a->guards, a->tries);
  }
  return 0;
}

// Turned round on the command line, so that a search for it through /proc finds no copy of the attacker's own.
static const char* turned(char* text) {
  const size_t length = strlen(text);
  for (size_t i = 0; i < length / 2; ++i) {
    const char c = text[i];
    text[i] = text[length - 1 - i];
    text[length - 1 - i] = c;
  }
  return text;
}

struct field {
  const char* key;
  const char** text;
  long* number;
  int* small;
};

static int set_field(struct stage* s, char* argument) {
  const struct field fields[] = {
      {"file", &s->file},
      {"directory", &s->directory},
      {"abstract", &s->abstract},
      {"unix", &s->unix_socket},
      {"mqueue", &s->mqueue},
      {"scratch", &s->scratch},
      {"hostname", &s->hostname},
      {"shared", &s->shared},
      {"user_namespace", &s->user_namespace},
      {"pid", 0, 0, &s->pid},
      {"tcp", 0, 0, &s->tcp_port},
      {"udp", 0, 0, &s->udp_port},
      {"shm", 0, 0, &s->shm_id},
      {"shm_key", 0, 0, &s->shm_key},
      {"fd", 0, 0, &s->fd},
      {"inside", 0, 0, &s->inside},
      {"memory", 0, &s->memory},
      {"processes", 0, &s->processes},
      {"disk", 0, &s->disk},
      {"files", 0, &s->files},
      {"open_files", 0, &s->open_files},
      {"output", 0, &s->output},
      {"deadline_ms", 0, &s->deadline_ms},
      {"cpu_ms", 0, &s->cpu_ms},
  };
  char* value = strchr(argument, '=');
  if (value == NULL) return -1;
  const size_t length = (size_t)(value - argument);
  ++value;
  if (length == 6 && strncmp(argument, "secret", 6) == 0) {
    char* copy = strdup(value);
    if (copy != NULL) s->secret = turned(copy);
    return 0;
  }
  if (length == 4 && strncmp(argument, "mark", 4) == 0) return 0;  // For the prover's eyes only.
  for (size_t i = 0; i < sizeof fields / sizeof *fields; ++i) {
    if (strlen(fields[i].key) != length || strncmp(fields[i].key, argument, length) != 0) continue;
    if (fields[i].text != NULL) *fields[i].text = value;
    if (fields[i].number != NULL) *fields[i].number = strtol(value, NULL, 10);
    if (fields[i].small != NULL) *fields[i].small = (int)strtol(value, NULL, 10);
    return 0;
  }
  return -1;
}

int run_attack(const struct attack* attack, const struct stage* stage) {
  struct attempt attempt = {.stage = stage};
  const enum outcome outcome = attack->run(&attempt);
  char line[320];
  int length = 0;
  if (outcome == WORKED) length = snprintf(line, sizeof line, "worked %s\n", attempt.detail);
  if (outcome == UNABLE) length = snprintf(line, sizeof line, "unable %s\n", attempt.detail);
  if (outcome == REFUSED) length = snprintf(line, sizeof line, "refused %d %s\n", attempt.error, attempt.detail);
  // One write: an attack may have left other writers on the same pipe.
  if (write(1, line, (size_t)length) != length) return 3;
  return outcome == WORKED ? 0 : 9 + (int)outcome;
}

static const struct attack* find(const char* id) {
  for (int i = 0; i < kAttacks; ++i) {
    if (strcmp(attacks[i]->id, id) == 0) return attacks[i];
  }
  return NULL;
}

int main(int argc, char** argv) {
  const char* verb = argc > 1 ? argv[1] : "";
  if (strcmp(verb, "list") == 0) return list();
  if (strcmp(verb, "victim") == 0) return be_victim();
  const int has_id = strcmp(verb, "run") == 0 || strcmp(verb, "fence") == 0;
  if (!has_id && strcmp(verb, "stage") != 0) {
    fprintf(stderr,
            "usage: belljar-corpus list | run ID [key=value...] | fence ID [key=value...] | stage key=value...\n");
    return 2;
  }
  struct stage stage = {0};
  for (int i = has_id ? 3 : 2; i < argc; ++i) {
    if (set_field(&stage, argv[i]) == 0) continue;
    fprintf(stderr, "belljar-corpus: unknown argument %s\n", argv[i]);
    return 2;
  }
  if (!has_id) return keep_stage(&stage);
  const struct attack* attack = argc > 2 ? find(argv[2]) : NULL;
  if (attack == NULL) {
    fprintf(stderr, "belljar-corpus: no such case; 'belljar-corpus list' names them\n");
    return 2;
  }
  return strcmp(verb, "run") == 0 ? run_attack(attack, &stage) : run_fenced(attack, &stage);
}
