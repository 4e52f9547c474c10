// Makes COUNT orphans that end at once: somebody else has to reap them. Then prints how many processes it sees.
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 100;
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child < 0) return 9;
    if (child == 0) {
      const pid_t orphan = fork();
      if (orphan == 0) usleep(1000);
      _exit(orphan < 0);
    }
    int status;
    waitpid(child, &status, 0);
    if (status != 0) return 8;
  }
  usleep(300000);
  int seen = 0;
  DIR* proc = opendir("/proc");
  for (const struct dirent* entry; (entry = readdir(proc)) != NULL;)
    seen += isdigit((unsigned char)entry->d_name[0]) != 0;
  printf("seen %d\n", seen);
  return 0;
}
