#!/usr/bin/env python3
"""Checks what the child side calls: nm -u over the jail's objects against an allow-list.

    tools/lint_symbols.py build/test/src/jail/libbelljar_jail.a [more objects…]

Between clone and exec the child shares a copy of a parent that may have had many threads: a lock that another thread
held stays locked for ever, so heap, stdio, locale, exceptions and everything else that may lock is out. What is left
are calls that man 7 signal-safety names, or that are a bare system call. Exits 1 and names object and symbol otherwise.
"""
import re
import subprocess
import sys

ALLOWED = set("""
    syscall __errno_location _exit _GLOBAL_OFFSET_TABLE_ __stack_chk_fail environ __environ
    memcpy memmove memset memcmp memchr strlen strcmp strncmp strchr strrchr strnlen bcmp explicit_bzero strcpy stpcpy strncpy
    __memcpy_chk __memmove_chk __memset_chk __explicit_bzero_chk
    read write readv writev pread pwrite open openat close dup dup2 dup3 pipe2 lseek fcntl ioctl fstat fstatat stat lstat statx
    open64 openat64 fcntl64 fstat64 fstatat64 stat64 lstat64 lseek64 pread64 pwrite64 __read_chk __write_chk
    __openat_2 __openat64_2 __open_2 __open64_2 __fdelt_chk
    send recv sendto recvfrom sendmsg recvmsg socket socketpair bind connect listen accept4 shutdown setsockopt getsockopt
    mkdir mkdirat mknod mknodat unlink unlinkat symlink symlinkat link linkat rename renameat rmdir readlink readlinkat
    chdir fchdir chroot chmod fchmod fchmodat chown fchown lchown fchownat umask access faccessat ftruncate ftruncate64
    mount umount umount2 unshare setns pivot_root sethostname setdomainname
    open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr
    statfs fstatfs statfs64 fstatfs64 getdents64 sched_getaffinity sched_setaffinity
    clone execve execveat fexecve vfork wait4 waitpid waitid kill getpid getppid getrusage gettid getuid geteuid getgid getegid
    setsid setpgid getpgrp prctl setrlimit setrlimit64 getrlimit getrlimit64 prlimit prlimit64 nice setpriority
    capset capget
    sigaction sigprocmask sigemptyset sigfillset sigaddset sigdelset sigsuspend signalfd pidfd_open pidfd_send_signal
    poll ppoll epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd clock_gettime nanosleep clock_nanosleep
    mmap mmap64 munmap mprotect madvise close_range alarm pause sched_yield timerfd_create timerfd_settime
    tcsetpgrp
""".split())

# Why the usual suspects are out; the first pattern that matches is shown.
REASONS = [
    (r"(m|c|re)alloc|free|posix_memalign|aligned_alloc|strdup|_Zn[wa]|_Zd[la]", "uses the heap, whose lock may be held"),
    (r"__cxa_|_Unwind_|__gxx_|_ZSt9terminate|_ZSt\d+__throw", "throws or unwinds; jail is built with -fno-exceptions"),
    (r"_ZSt\d+__glibcxx_assert", "a checked std access prints before it aborts; check the bound by hand"),
    (r"f?printf|__.*printf_chk|fopen|fclose|fwrite|fputs|puts|fflush|std(in|out|err)|perror", "uses stdio, which locks"),
    (r"pthread_|__cxa_guard|call_once|sem_", "uses locks or threads"),
    (r"fork|posix_spawn|system|popen|atexit|exit", "runs handlers that other code registered"),
    (r"set(res|re)?[ug]id|setgroups", "stops all threads to keep their ids in step, by a lock; use syscall(SYS_…)"),
    (r"abort|raise|pthread_kill", "locks, or trusts a cached thread id; use __builtin_trap()"),
    (r"locale|strerror|strtod|getenv|getpw|getgr|dlopen", "touches locale, environment or name service"),
    (r"_ZNK?St|_ZNSt", "is compiled C++ library code, which may allocate"),
]


def symbols(path):
    """(undefined as {name: object}, defined) over an archive or object."""
    listing = subprocess.run(["nm", "-A", "-P", path], capture_output=True, text=True, check=True).stdout
    undefined, defined = {}, set()
    for line in listing.splitlines():
        where, name, kind = re.match(r"(.*?): (\S+) (\S)", line).groups()
        if kind in "Uwv":
            undefined.setdefault(name, where)
        else:
            defined.add(name)
    return undefined, defined


def breaches(paths):
    undefined, defined = {}, set()
    for path in paths:
        more_undefined, more_defined = symbols(path)
        undefined.update(more_undefined)
        defined |= more_defined
    found = []
    for name in sorted(set(undefined) - defined - ALLOWED):
        why = next((text for pattern, text in REASONS if re.match(pattern, name)), "is not on the allow-list")
        found.append(f"{undefined[name]}: {name} {why}")
    # Code that defines it itself drags it in as well: an inlined operator new is still operator new.
    for name in sorted(defined):
        if re.match(r"_Zn[wa]|_Zd[la]", name):
            found.append(f"{paths[0]}: defines {name}, an operator new or delete")
    return found


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    found = breaches(sys.argv[1:])
    print("\n".join(found) if found else "lint_symbols: the child side calls nothing beyond the allow-list")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
