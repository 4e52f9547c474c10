// attack.h: what a case of the containment corpus is. One case is one file: it defines one `const struct attack`, named
// as the file is (b22_bpf.c: `const struct attack b22_bpf = {…};`), and cases.def lists them all, one a line. They are
// linked into one static program, belljar-corpus, which runs one attack per process and says on one line of standard
// output how it went:
//
//   worked <what was got>      the attack did what it set out to do
//   refused <errno> <by what>  something stood in its way
//   unable <why>               this kernel or host has nothing to attack here
//
// The same program runs outside as the control and inside as the guest. It is written against the kernel alone: no
// shared library, no file of the root it runs in, and bounded by itself in count, size and time.
//
// The control of an attack runs on the user's own machine, as root in its own mount and uts namespaces, with limits
// and a deadline around it. Where success itself would hurt (reboot, clock, modules, sysctl) an attack only knocks:
// it calls with arguments that the kernel turns down *after* its permission checks, or opens for writing and writes
// nothing, and counts the later error as worked.
#pragma once

enum { SEEN_LATE_MS = 5000 };
enum outcome { WORKED = 0, REFUSED = 1, UNABLE = 2 };

// What the prover set up on the host for an attack to reach for. Absent ones are NULL or 0.
struct stage {
  const char* file;         // a host file that holds the secret
  const char* directory;    // the host directory that holds it
  const char* secret;       // the bytes that must not be readable inside; never printed by an attack
  const char* abstract;     // name of a listening abstract socket of the host
  const char* unix_socket;  // path of a listening socket of the host
  int pid;                  // a process of the host that holds the secret in its memory, environment and an open file
  int tcp_port;             // listening on the host's 127.0.0.1
  int udp_port;
  int shm_id;  // SysV memory of the host that holds the secret
  int shm_key;
  const char* mqueue;  // POSIX message queue of the host
  int fd;              // a descriptor that the caller left open across exec, holding the secret
  // The limits inside. An attack on a limit goes beyond it by half at least and by twice at most, then says worked; the
  // fence around the control is four times as wide. 0 where the policy has none.
  long memory;  // bytes
  long processes;
  long disk;             // bytes of a private filesystem
  long files;            // inodes of it
  long open_files;       // per process
  long output;           // bytes of standard output
  long cpu_ms;           // CPU time of all processes together, in cases with ENDED_BY_GUARD
  long deadline_ms;      // wall clock of cases with ENDED_BY_GUARD but SEEN_LATE; the control has 2.5 times as long
  const char* scratch;   // a writable directory: the private workdir inside, a sized tmpfs (or a temp dir) outside
  const char* hostname;  // of the host
  const char* user_namespace;  // of the host, as /proc/self/ns/user shows it
  const char* shared;  // a directory with a file of the caller's and, as root, a device; for cases with NEEDS_MOUNT
  int inside;          // 1 in the sandbox, 0 in the control: for what an attack has to clean up or hold back outside,
                       // never for deciding how it went
};

struct attempt {
  const struct stage* stage;
  char detail[200];  // what was got, or what refused
  int error;         // errno of the refusal
};

// How a case is run and judged, besides the line it prints.
enum trait {
  // It may be killed before it can say anything (SIGSYS, out of memory, deadline), and that is containment. Without
  // this a guest that says nothing is an error.
  ENDED_BY_GUARD = 1 << 0,
  // Runs alone: nothing else may burden the machine meanwhile. For cases that measure time.
  NEEDS_QUIET = 1 << 1,
  // Judged by survivors: it worked if one of its processes still lives when the run is over. They are known by the
  // word that the prover puts among the arguments, so fork without exec, and keep argv as it is.
  LEAVES_PROCESSES = 1 << 2,
  // Judged by the bytes that came out: it worked if they are more than `output`.
  FLOODS_OUTPUT = 1 << 3,
  // The control needs root, or a user namespace of its own where there is none: call seek_power() first.
  NEEDS_POWER = 1 << 4,
  // Inside, `shared` is mounted read-only, as a user's own directory would be.
  NEEDS_MOUNT = 1 << 5,
  // With ENDED_BY_GUARD: the guard only looks now and then, so there is no short deadline and no limit of CPU time,
  // which
  // would be in time before it and show nothing of it. Stays with what it has for SEEN_LATE_MS inside.
  SEEN_LATE = 1 << 6,
};

struct attack {
  const char* id;     // number in the corpus, with a letter where it has several: "A13", "B26f"
  const char* name;   // "remount-read-write"
  const char* tries;  // what it tries, in one line of at most 60 characters
  // Guards of the receipt of which each alone stops it, the outermost first: "seccomp, capabilities". A '?' behind one
  // means that it is no promise where the receipt calls it partial ("root filesystem?"). Besides those of the receipt:
  // "descriptors", "environment", "open files", "output limit" and "supervisor", which hold at every level.
  const char* guards;
  enum outcome (*run)(struct attempt*);
  unsigned traits;  // enum trait, or 0
};

// For the end of run(): `return refused(attempt, "mount of tmpfs");` takes errno.
enum outcome refused(struct attempt* attempt, const char* by);
enum outcome worked(struct attempt* attempt, const char* what);
enum outcome unable(struct attempt* attempt, const char* why);

// support.c, for all cases:

// What any program on a host would do that lacks a capability: makes itself root of a user namespace of its own, with a
// mount namespace in it. Does nothing for root. 0, or -1 with errno; an attack goes on either way and lets the call
// that it is about decide.
int seek_power(void);
// Holds for the call that knocks: 1 if errno is how a guard says no (EPERM, EACCES, ENOSYS), 0 if the kernel got
// further.
int is_denied(int error);
// 1 if the file or the first `limit` bytes of the descriptor hold the secret.
int file_holds(const char* path, const char* secret);
int fd_holds(int fd, const char* secret);
int memory_holds(const void* memory, long size, const char* secret);
// Zeroed memory that children share: of a file in `scratch`, because not every sandbox gives any without a name. NULL
// with errno.
void* shared_memory(const struct stage* stage, long size);
// Calls `hold(wanted / count + 1)` in as many processes (16 at most), because each may only have so many descriptors;
// all keep what they hold until all have theirs, and then for `milliseconds`; 20 s at most in all. The sum of what they
// returned, or -1.
long in_processes(const struct stage* stage, int count, long wanted, int milliseconds, long (*hold)(long));
// Reads at most size - 1 bytes and ends them with a NUL. Bytes read, or -1 with errno.
long slurp(const char* path, char* buffer, long size);
