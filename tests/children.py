"""Processes that the checks start, and what they leave behind."""

import contextlib
import ctypes
import glob
import os
import pathlib
import re
import signal
import subprocess
import time

import harness


class Children:
    """Starts processes, and adopts what they leave behind.

    As "child subreaper" this process inherits every orphan below it, so that a sandbox which outlives its test is found
    by parentage and not by name. Orphans that end by themselves are reaped at once, as pid 1 would do it.
    """

    def __init__(self):
        pr_set_child_subreaper = 36
        ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)
        self.own = set()
        self.starting = False
        signal.signal(signal.SIGCHLD, lambda *_: self.reap())
        # Started in the background, by nohup or by a service, these may be ignored; what is tested here must not be.
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
            if signal.getsignal(number) == signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)

    def reap(self):
        while not self.starting:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None or ended.si_pid in self.own:
                return
            # Another signal may come between the two, and its handler be the quicker one.
            with contextlib.suppress(ChildProcessError):
                os.waitpid(ended.si_pid, 0)

    def begin(self, argv, output=subprocess.PIPE, **options):
        """The only way to start a process here: reap() would steal any other's status. To be ended by finish()."""
        self.starting = True
        process = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, **options)
        self.own.add(process.pid)
        self.starting = False
        return process

    def finish(self, process):
        """Returns (status, merged output where it is a pipe)."""
        text = (process.communicate()[0] or b"").decode(errors="replace")
        self.own.discard(process.pid)
        self.reap()
        return process.returncode, text

    def run(self, argv, **options):
        return self.finish(self.begin(argv, **options))

    def orphans(self):
        """Live processes that were left to us."""
        found = {}
        for stat in glob.glob("/proc/[0-9]*/stat"):
            with contextlib.suppress(OSError):
                pid, name, state, parent = re.match(r"(\d+) \((.*)\) (\S) (\d+)", pathlib.Path(stat).read_text(), re.S).groups()
                if int(parent) == os.getpid() and int(pid) not in self.own and state != "Z":
                    found[f"process {pid} ({name})"] = int(pid)
        return found


def in_use(path):
    """Whether the process that a name such as belljar-1234-56ab carries is alive: then it is somebody's run, no leak."""
    owner = re.search(r"belljar\D*-(\d+)-", os.path.basename(path))
    return owner is not None and os.path.exists(f"/proc/{owner[1]}")


class LeakCheck:
    """Compares what exists before and after: orphans, mounts, control groups, temporary files."""

    def __init__(self, children):
        self.children = children
        self.before = self.look()

    def look(self):
        seen = set(self.children.orphans())
        seen |= {"mount " + path for path in harness.own_mounts()}
        seen |= {"control group " + path for own in harness.own_cgroups() for path in glob.glob(f"{own}/**/belljar*", recursive=True)
                 if os.path.isdir(path) and not in_use(path)}
        seen |= {"file " + path for where in ("/tmp", "/var/tmp", "/dev/shm", "/run") for path in glob.glob(f"{where}/belljar*")
                 if not in_use(path)}
        return seen

    def leaks(self):
        """What is there now, was not before, and does not go away by itself."""
        deadline = time.monotonic() + harness.PATIENCE
        while True:
            new = self.look() - self.before
            if not new or time.monotonic() > deadline:
                self.before |= new  # Reported once.
                for pid in self.children.orphans().values():
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                return sorted(new)
            time.sleep(0.1)
