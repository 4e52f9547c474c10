// Makes exactly one system call of a program, or of the processes that it starts, go wrong:
//
//   fail_nth LOG ROLE NTH ACTION -- program arguments…
//
// ROLE counts processes in the order in which they are made (0 is the program), NTH that process's system calls from 1.
// ACTION is an errno by number (the call is not made and fails with it), "kill" (the process gets SIGKILL as it enters
// the call), "stop" (it stops as it leaves the call, and is let go: nobody but a SIGCONT wakes it), or "none". LOG gets
// a line "role parent nth number" for each call, then "did role nth number" when the fault was injected, and "exec
// role" when a process other than the program replaced itself: from then on it is a guest, and runs untraced.
//
// strace can inject too, but counts each process by itself: the third call would fail in all of them at once, and a
// parent that gives up hides what its child would have done.
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMostProcesses = 64 };

struct process {
  pid_t pid;
  int role;
  int parent;
  long calls;
  int in_call;
  int injected;  // Between entry and exit of the call that fails.
  int seen;      // Its first stop is over.
};

static struct process processes[kMostProcesses];
static int roles;
static FILE* log_file;
static int wanted_role;
static long wanted_call;
static const char* action;

static struct process* find(pid_t pid) {
  for (int i = 0; i < kMostProcesses; ++i) {
    if (processes[i].pid == pid) return &processes[i];
  }
  return NULL;
}

// A child may stop before its parent's event tells of it: whoever comes first makes the entry.
static struct process* add(pid_t pid) {
  struct process* process = find(pid);
  if (process != NULL) return process;
  process = find(0);
  if (process == NULL) {
    fprintf(stderr, "fail_nth: more than %d processes\n", kMostProcesses);
    exit(2);
  }
  memset(process, 0, sizeof *process);
  process->pid = pid;
  process->role = roles++;
  process->parent = -1;
  return process;
}

static struct iovec registers_of(pid_t pid, struct user_regs_struct* registers) {
  struct iovec part = {registers, sizeof *registers};
  if (ptrace(PTRACE_GETREGSET, pid, (void*)NT_PRSTATUS, &part) != 0) part.iov_len = 0;
  return part;
}

static void set_registers(pid_t pid, struct iovec* part) { ptrace(PTRACE_SETREGSET, pid, (void*)NT_PRSTATUS, part); }

static void enter(struct process* process) {
  struct user_regs_struct registers;
  struct iovec part = registers_of(process->pid, &registers);
  if (part.iov_len == 0) return;
  ++process->calls;
  const long number = (long)registers.orig_rax;
  fprintf(log_file, "%d %d %ld %ld\n", process->role, process->parent, process->calls, number);
  if (process->role != wanted_role || process->calls != wanted_call || strcmp(action, "none") == 0) return;
  fprintf(log_file, "did %d %ld %ld\n", process->role, process->calls, number);
  fflush(log_file);
  if (strcmp(action, "kill") == 0) {
    kill(process->pid, SIGKILL);
    return;
  }
  process->injected = 1;
  // A close that tells of an error has closed all the same.
  if (number == SYS_close || strcmp(action, "stop") == 0) return;
  registers.orig_rax = (unsigned long long)-1;
  set_registers(process->pid, &part);
}

// The signal to go on with, or -1 when the process was let go.
static int leave(struct process* process) {
  if (!process->injected) return 0;
  process->injected = 0;
  if (strcmp(action, "stop") == 0) {
    kill(process->pid, SIGSTOP);
    ptrace(PTRACE_DETACH, process->pid, NULL, NULL);  // A tracer that goes on would wake it.
    process->pid = 0;
    return -1;
  }
  struct user_regs_struct registers;
  struct iovec part = registers_of(process->pid, &registers);
  if (part.iov_len == 0) return 0;
  registers.rax = (unsigned long long)-atol(action);
  set_registers(process->pid, &part);
  return 0;
}

// Handles one stop; the signal to go on with, or -1 when the process was let go.
static int handle_stop(struct process* process, int status) {
  const int number = WSTOPSIG(status);
  const int event = status >> 16;
  if (number == (SIGTRAP | 0x80)) {
    process->in_call = !process->in_call;
    if (!process->in_call) return leave(process);
    enter(process);
    return 0;
  }
  if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE) {
    unsigned long child = 0;
    ptrace(PTRACE_GETEVENTMSG, process->pid, NULL, &child);
    add((pid_t)child)->parent = process->role;
    return 0;
  }
  if (event == PTRACE_EVENT_EXEC && process->role != 0) {
    fprintf(log_file, "exec %d\n", process->role);
    fflush(log_file);
    ptrace(PTRACE_DETACH, process->pid, NULL, NULL);
    process->pid = 0;
    return -1;
  }
  if (event != 0) return 0;
  if (!process->seen && number == SIGSTOP) {
    process->seen = 1;
    return 0;
  }
  return number;
}

static void start(char** argv) {
  ptrace(PTRACE_TRACEME, 0, NULL, NULL);
  raise(SIGSTOP);
  execvp(argv[0], argv);
  perror("fail_nth: exec");
  _exit(2);
}

int main(int argc, char** argv) {
  if (argc < 7 || strcmp(argv[5], "--") != 0) {
    fprintf(stderr, "usage: fail_nth LOG ROLE NTH ERRNO|kill|stop|none -- program arguments…\n");
    return 2;
  }
  log_file = fopen(argv[1], "we");
  if (log_file == NULL) {
    perror("fail_nth: log");
    return 2;
  }
  wanted_role = atoi(argv[2]);
  wanted_call = atol(argv[3]);
  action = argv[4];
  const pid_t program = fork();
  if (program == 0) start(argv + 6);
  int status = 0;
  int result = 2;
  waitpid(program, &status, 0);
  const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                       PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
  if (ptrace(PTRACE_SETOPTIONS, program, NULL, options) != 0) {
    perror("fail_nth: ptrace");
    return 2;
  }
  add(program)->seen = 1;
  ptrace(PTRACE_SYSCALL, program, NULL, NULL);
  pid_t pid = 0;
  while ((pid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
    if (pid <= 0) continue;
    struct process* process = add(pid);
    if (WIFSTOPPED(status)) {
      const int number = handle_stop(process, status);
      if (number >= 0) ptrace(PTRACE_SYSCALL, pid, NULL, number);
      continue;
    }
    if (pid == program) result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    process->pid = 0;
  }
  fclose(log_file);
  return result;
}
