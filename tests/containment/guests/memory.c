// Uses memory until it is stopped, or MOST MiB if given, then prints "used N MiB".
//
//   memory WHERE [MOST]     WHERE: anonymous, shm, memfd, tmp, workdir, children, sysv
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMiB = 1 << 20 };

static int fill_file(int fd, long most) {
  static char block[kMiB];
  memset(block, 'x', sizeof block);
  for (long used = 0; used < most; ++used) {
    if (write(fd, block, sizeof block) != kMiB) {
      printf("errno %d after %ld MiB\n", errno, used);
      return 9;
    }
  }
  printf("used %ld MiB\n", most);
  return 0;
}

static int fill_memory(long most) {
  for (long used = 0; used < most; ++used) {
    char* block = mmap(NULL, kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) {
      printf("errno %d after %ld MiB\n", errno, used);
      return 9;
    }
    memset(block, 'x', kMiB);
  }
  printf("used %ld MiB\n", most);
  return 0;
}

static int fill_segments(long most) {
  int ids[4096];
  int made = 0;
  for (long used = 0; used < most && made < 4096; used += 8) {
    const int id = shmget(IPC_PRIVATE, 8 * kMiB, IPC_CREAT | 0600);
    char* block = id < 0 ? (void*)-1 : shmat(id, NULL, 0);
    if (block == (void*)-1) return 9;
    memset(block, 'x', 8 * kMiB);
    shmdt(block);
    ids[made++] = id;
  }
  // Who is killed on the way leaves them all behind; only the control comes here.
  while (made > 0) shmctl(ids[--made], IPC_RMID, NULL);
  printf("used %ld MiB\n", most);
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const char* where = argv[1];
  const long most = argc > 2 ? atol(argv[2]) : 1 << 20;
  if (strcmp(where, "shm") == 0) return fill_file(open("/dev/shm/fill", O_WRONLY | O_CREAT, 0600), most);
  if (strcmp(where, "memfd") == 0) return fill_file(memfd_create("fill", 0), most);
  if (strcmp(where, "tmp") == 0) return fill_file(open("/tmp/fill", O_WRONLY | O_CREAT, 0600), most);
  if (strcmp(where, "workdir") == 0) return fill_file(open("fill", O_WRONLY | O_CREAT, 0600), most);
  if (strcmp(where, "sysv") == 0) return fill_segments(most);
  if (strcmp(where, "children") == 0) {
    for (int i = 0; i < 7; ++i) {
      if (fork() == 0) {
        fill_memory(most / 8);
        usleep(500000);  // until all have theirs
        _exit(0);
      }
    }
    const int status = fill_memory(most / 8);
    while (wait(NULL) > 0) {
    }
    return status;
  }
  return fill_memory(most);
}
