// Misuses the filesystem under the working directory (or DIRECTORY) and says how far it got.
//
//   disk WAY COUNT [DIRECTORY]     WAY: files, deep, sparse
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const long count = atol(argv[2]);
  if (argc > 3 && chdir(argv[3]) != 0) return 3;
  long done = 0;
  if (strcmp(argv[1], "files") == 0) {
    for (; done < count; ++done) {
      char name[32];
      snprintf(name, sizeof name, "f%ld", done);
      const int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
      if (fd < 0) break;
      close(fd);
    }
  } else if (strcmp(argv[1], "deep") == 0) {
    for (; done < count; ++done) {
      if (mkdir("d", 0700) != 0 || chdir("d") != 0) break;
    }
  } else if (strcmp(argv[1], "sparse") == 0) {
    const int fd = open("sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && ftruncate(fd, (off_t)count) == 0 && pwrite(fd, "x", 1, (off_t)count - 1) == 1) done = count;
  }
  const int error = done == count ? 0 : errno;
  printf("done %ld of %ld, errno %d\n", done, count, error);
  return error == 0 ? 0 : 9;
}
