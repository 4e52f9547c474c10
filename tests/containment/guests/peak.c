// Runs a command and writes the peak memory of it and its children, in KiB, into a file. Not a guest but a scale:
// ru_maxrss survives exec, so a process started by a large one (a test runner) would seem as large as that. This one is
// small.
//
//   peak FILE COMMAND…
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const pid_t child = fork();
  if (child == 0) {
    execv(argv[2], argv + 2);
    _exit(127);
  }
  int status = 0;
  struct rusage usage;
  if (wait4(child, &status, 0, &usage) != child) return 3;
  FILE* file = fopen(argv[1], "w");
  if (file == NULL) return 4;
  fprintf(file, "%ld\n", usage.ru_maxrss);
  fclose(file);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
