// Forks without end. With "wait" each process stays until it is killed; with "churn" they also end and come again.
// Outside a sandbox give a third argument: the most processes it may make.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const int churn = argc > 1 && strcmp(argv[1], "churn") == 0;
  long most = argc > 2 ? atol(argv[2]) : -1;
  for (long made = 0; made != most; ++made) {
    const pid_t child = fork();
    if (child < 0) {
      printf("refused %d\n", errno);
      fflush(stdout);
      usleep(1000);
    } else if (child == 0) {
      if (most >= 0) _exit(0);
      if (churn) usleep(2000);
      if (churn && rand() % 2) _exit(0);
    }
    if (most >= 0) waitpid(child, NULL, 0);
  }
  printf("made %ld\n", most);
  return 0;
}
