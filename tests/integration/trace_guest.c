/* Behaviour that a tracer has to be transparent to, and bytes that it has to survive. One word chooses which. Prints
 * "ok" when everything was as it is without a tracer. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

static int expect(int value, const char* what) {
  if (value) return 0;
  printf("not as expected: %s (errno %d)\n", what, errno);
  exit(1);
}

static char** own_argv;

/* A thread that is not the first executes a program: the process goes on under the id of the first. */
static void* execute(void* unused) {
  (void)unused;
  char* argv[] = {own_argv[0], "say-ok", NULL};
  execv("/proc/self/exe", argv);
  return NULL;
}

static void exec_from_thread(void) {
  pthread_t other;
  pthread_create(&other, NULL, execute, NULL);
  for (;;) pause();
}

static void* open_many(void* name) {
  for (int i = 0; i < 300; ++i) {
    char path[64];
    snprintf(path, sizeof path, "/missing/%s/%d", (char*)name, i % 10);
    expect(open(path, O_RDONLY) < 0 && errno == ENOENT, "open in a thread");
  }
  return name;
}

static void threads(void) {
  pthread_t some[8];
  char names[8][4];
  for (int i = 0; i < 8; ++i) {
    snprintf(names[i], sizeof names[i], "t%d", i);
    expect(pthread_create(&some[i], NULL, open_many, names[i]) == 0, "pthread_create");
  }
  for (int i = 0; i < 8; ++i) pthread_join(some[i], NULL);
}

static void forks(void) {
  for (volatile int i = 0; i < 50; ++i) {
    pid_t child = i % 2 ? fork() : vfork();
    if (child == 0) _exit(open("/missing/by-a-child", O_RDONLY) < 0 ? i : 99);
    int status = 0;
    expect(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == i, "a child's status");
  }
}

/* Job control: the parent sees the child stop and go on, and the child sees nothing. */
static void stop_and_continue(void) {
  int seen[2];
  expect(pipe(seen) == 0, "pipe");
  pid_t child = fork();
  if (child == 0) {
    raise(SIGSTOP);
    char byte;
    expect(read(seen[0], &byte, 1) == 1, "the parent saw it go on"); /* Or it would see the end alone. */
    stat("/missing/after-the-stop", &(struct stat){0});
    _exit(7);
  }
  int status = 0;
  expect(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP, "it stops");
  usleep(50000);
  expect(waitpid(child, &status, WUNTRACED | WNOHANG) == 0, "it stays stopped");
  kill(child, SIGCONT);
  expect(waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status), "it goes on");
  expect(write(seen[1], "", 1) == 1, "write");
  expect(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7, "it ends by itself");
}

static volatile sig_atomic_t caught;
static void on_signal(int number) { caught = number; }

static void signals(void) {
  struct sigaction action = {.sa_handler = on_signal};
  int numbers[] = {SIGTRAP, SIGUSR1, SIGCHLD, SIGALRM, SIGTERM};
  for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
    sigaction(numbers[i], &action, NULL);
    caught = 0;
    raise(numbers[i]);
    expect(caught == numbers[i], "a signal is delivered once, as it was sent");
  }
  /* A call that a signal interrupts. */
  char path[300];
  const char* home = getenv("HOME");
  snprintf(path, sizeof path, "%s/fifo", home == NULL ? "/tmp" : home);
  expect(mkfifo(path, 0600) == 0, "mkfifo");
  sigaction(SIGALRM, &action, NULL);
  ualarm(20000, 0);
  expect(open(path, O_RDONLY) < 0 && errno == EINTR, "open of a fifo is interrupted");
  pid_t child = fork();
  if (child == 0) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
  }
  int status = 0;
  expect(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "death by signal");
}

/* Bytes that are not what a path should be. */
static void odd_paths(void) {
  char* map = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  expect(munmap(map + 2 * PAGE, PAGE) == 0, "munmap");
  expect(open((char*)1, O_RDONLY) < 0 && errno == EFAULT, "a bad pointer");
  expect(open(map + 2 * PAGE, O_RDONLY) < 0 && errno == EFAULT, "an unmapped pointer");
  memset(map + 2 * PAGE - 10, 'a', 10);
  expect(open(map + 2 * PAGE - 10, O_RDONLY) < 0 && errno == EFAULT, "a path that runs out of memory");
  memcpy(map + 2 * PAGE - 10, "/missing/", 10);
  map[2 * PAGE - 2] = 'B';
  map[2 * PAGE - 1] = 0;
  expect(open(map + 2 * PAGE - 10, O_RDONLY) < 0 && errno == ENOENT, "a path that ends with its page");
  memcpy(map + PAGE - 5, "/missing/across", 16);
  expect(open(map + PAGE - 5, O_RDONLY) < 0 && errno == ENOENT, "a path across two pages");
  char* large = malloc(3 * PAGE);
  memset(large, 'x', 3 * PAGE - 1);
  large[3 * PAGE - 1] = 0;
  expect(open(large, O_RDONLY) < 0 && errno == ENAMETOOLONG, "a path that is too long");
  memset(large, '/', PAGE - 20);
  strcpy(large + PAGE - 20, "missing-far");
  expect(open(large, O_RDONLY) < 0 && errno == ENOENT, "a long path of slashes");
  expect(open("/missing/\xff\xfe\x80", O_RDONLY) < 0 && errno == ENOENT, "a path that is not UTF-8");
  expect(open("/missing/\033]0;title\007\033[31m\nred", O_RDONLY) < 0 && errno == ENOENT, "escapes");
  expect(open("", O_RDONLY) < 0 && errno == ENOENT, "an empty path");
  expect(openat(-7, "relative", O_RDONLY) < 0 && errno == EBADF, "a bad directory");
  expect(openat(AT_FDCWD, "missing-relative", O_RDONLY) < 0 && errno == ENOENT, "a relative path");
}

static char racing[64];
static volatile int done;
static void* rewrite(void* unused) {
  while (!done) {
    strcpy(racing, "/missing/one");
    strcpy(racing, "/usr/bin/env");
    memset(racing, 'z', sizeof racing);
    racing[sizeof racing - 1] = 0;
  }
  return unused;
}

static void race(void) {
  pthread_t other;
  pthread_create(&other, NULL, rewrite, NULL);
  for (int i = 0; i < 5000; ++i) {
    int fd = open(racing, O_RDONLY);
    if (fd >= 0) close(fd);
  }
  done = 1;
  pthread_join(other, NULL);
}

static void flood(int count) {
  for (int i = 0; i < count; ++i) {
    char path[300];
    snprintf(path, sizeof path, "/missing/%0200d", i);
    open(path, O_RDONLY);
  }
}

/* Links upon links: each costs a tracer that follows them more than the guest that made them. */
static void maze(void) {
  chdir("/tmp");
  mkdir("d", 0700);
  char target[5000] = "";
  for (int i = 0; i < 700; ++i) strcat(target, "d/../");
  symlink(strcat(target, "missing"), "l0");
  for (int i = 1; i < 39; ++i) {
    char name[16], before[16];
    snprintf(name, sizeof name, "l%d", i);
    snprintf(before, sizeof before, "l%d", i - 1);
    symlink(before, name);
  }
  for (int i = 0; i < 2000; ++i) {
    char path[64];
    snprintf(path, sizeof path, "l38/%d", i);
    open(path, O_RDONLY);
  }
}

int main(int argc, char** argv) {
  own_argv = argv;
  const char* what = argc > 1 ? argv[1] : "";
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (!strcmp(what, "exec-from-thread")) exec_from_thread();
  if (!strcmp(what, "threads")) threads();
  if (!strcmp(what, "forks")) forks();
  if (!strcmp(what, "stop")) stop_and_continue();
  if (!strcmp(what, "signals")) signals();
  if (!strcmp(what, "odd-paths")) odd_paths();
  if (!strcmp(what, "race")) race();
  if (!strcmp(what, "flood")) flood(argc > 2 ? atoi(argv[2]) : 1000);
  if (!strcmp(what, "maze")) maze();
  puts("ok");
  return 0;
}
