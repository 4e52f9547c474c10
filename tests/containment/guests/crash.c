// Ends by the signal named by its number, or by a real fault for "fault" and "abort".
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const struct rlimit core = {RLIM_INFINITY, RLIM_INFINITY};
  setrlimit(RLIMIT_CORE, &core);  // asks for a core dump
  if (strcmp(argv[1], "abort") == 0) abort();
  if (strcmp(argv[1], "fault") == 0) *(volatile int*)8 = 1;
  raise(atoi(argv[1]));
  return 3;
}
