"""What the suites share: starting the program, its guests, and looking for what it leaves behind.

BELLJAR names the program, BELLJAR_GUESTS the directory of the guests, BELLJAR_LONG=1 asks for the long forms of tests.

Nothing here may depend on how busy the machine is. A test waits for an event (a line, a file, a state of a process) and gives
up only after PATIENCE, which no load explains; what something costs in time is for bench/ to say.
"""

import contextlib
import ctypes
import glob
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[1]
BELLJAR = os.environ.get("BELLJAR") or str(ROOT / "build/test/src/cli/belljar")
GUESTS = os.environ.get("BELLJAR_GUESTS") or str(ROOT / "build/test/tests/guests")
LONG = os.environ.get("BELLJAR_LONG") == "1"
IS_ROOT = os.geteuid() == 0
PATIENCE = 60.0  # Seconds: longer than anything takes that works, however busy the machine is.
# For what takes long and hardly depends on who runs it: once in a usual run, by both in a long one.
BY_ROOT = IS_ROOT or LONG
BY_USER = not IS_ROOT or LONG
PYTHON = "/usr/bin/python3"  # Not the one of a virtual environment: level kernel sees only the system's.
VERDICTS = {"exited", "signaled", "timed_out", "cpu_time", "out_of_memory", "process_limit", "disk_limit", "file_size",
            "output_limit", "syscall", "cancelled", "refused", "failed"}

# Whoever starts the suites in the background ignores these for them, and programs inherit that.
for _signal in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(_signal) == signal.SIG_IGN:
        signal.signal(_signal, signal.SIG_DFL)

ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: whatever outlives belljar becomes ours, and is seen.


def belljar(*arguments, timeout=2 * PATIENCE, text=True, **options):
    """`belljar run ARGUMENTS…`; standard input is empty unless given."""
    if "input" not in options and "stdin" not in options:
        options["stdin"] = subprocess.DEVNULL
    if text:
        options.setdefault("errors", "replace")
    return subprocess.run([BELLJAR, "run", *map(str, arguments)], capture_output=True, text=text, timeout=timeout, **options)


class LeftBehind(AssertionError):
    """Something of a run outlived it. Once is enough: such a test is not tried again."""


class Escape(AssertionError):
    """A guest got out, or ran behind a wall with a hole in it. Not tried again either."""


class Result(dict):
    """One Result as JSON, with the exit status of the program and its standard error."""

    @property
    def verdict(self):
        return self["verdict"]


def run_json(*arguments, **options):
    done = belljar("--json", *arguments, **options)
    lines = done.stdout.splitlines()
    assert len(lines) == 1, f"--json prints one line, not {len(lines)}: {done.stdout[:2000]!r} {done.stderr[:2000]!r}"
    result = Result(json.loads(lines[0]))
    result.status, result.notes = done.returncode, done.stderr
    assert result["verdict"] in VERDICTS
    return result


def guest(name):
    """The path of a guest on the host."""
    path = os.path.join(GUESTS, name)
    assert os.access(path, os.X_OK), f"no guest {path}; build them, or set BELLJAR_GUESTS"
    return path


def inside(level, name, *arguments):
    """Arguments of `run` that start a guest at a level: level process sees the host's files, kernel gets a mount."""
    path = guest(name)
    if level == "kernel":
        return ["--level", level, "--ro", f"{GUESTS}:/guests", "--", f"/guests/{name}", *map(str, arguments)]
    return ["--level", level, "--", path, *map(str, arguments)]


def outside(name, *arguments, **options):
    """The control: the same guest without any sandbox."""
    options.setdefault("timeout", PATIENCE)
    return subprocess.run([guest(name), *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          **options)


def token():
    """A word to find a guest by among all processes of the host."""
    return f"guest-{uuid.uuid4().hex}"


def processes_with(word):
    """Pids of live guests that have `word` in their command line. Belljar's janitor, which may still be about to end for
    a moment after a run, is none."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if word.encode() in pathlib.Path(path).read_bytes():
                pid = int(path.split("/")[2])
                if pid != os.getpid() and pathlib.Path(f"/proc/{pid}/comm").read_text() != "belljar-janitor\n":
                    found.append(pid)
    return found


def guard(result, name):
    """One line of the receipt."""
    return next(entry for entry in result["receipt"]["guards"] if entry["guard"] == name)


def by_cgroup(result, name):
    """Whether a limit is kept by a control group. Without one (not root, nothing delegated) a watcher is late, and the
    receipt has to say so: a test that asks less then must not be passed by silence."""
    line = guard(result, name)
    if "cgroup" in line["by"]:
        # Memory alone has parts that no cgroup counts, and where nobody else does either it says so.
        assert line["state"] == "enforced" or (name == "memory limit" and line["reason"]), line
        return True
    assert line["state"] == "partial" and line["reason"], line
    return False


def wait_until(condition, seconds=PATIENCE, pause=0.02):
    """The first true value of condition(), or its last value when the time is up."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > deadline:
            return value
        time.sleep(pause)


def _parents():
    """Every process: {pid: (parent, name, state, start time)}."""
    parents = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError):
            match = re.match(r"(\d+) \((.*)\) (\S) (\d+)(?: \S+){17} (\d+)", pathlib.Path(path).read_text(errors="replace"), re.S)
            parents[int(match[1])] = (int(match[4]), match[2], match[3], match[5])
    return parents


def descendants():
    """Every process below this one: {pid: name}. Orphans are among them, since this process adopts them."""
    return {pid: f"{name} {state}" for pid, (_, name, state, _) in _below().items()}


def _below():
    parents = _parents()
    below = {os.getpid()}
    grown = True
    while grown:
        more = {pid for pid, (parent, *_) in parents.items() if parent in below} - below
        below |= more
        grown = bool(more)
    return {pid: parents[pid] for pid in below - {os.getpid()} if pid in parents}


def reap_janitors():
    """Belljar does not wait for its janitor, which so becomes ours when it ends; a zombie each would add up."""
    for pid, (parent, name, state, _) in _parents().items():
        if parent == os.getpid() and state == "Z" and name == "belljar-janitor":
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def own_cgroups():
    """The directories below which Belljar makes groups for a caller like this one, in each hierarchy. What is elsewhere
    belongs to others."""
    for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        for name in controllers.split(","):
            top = os.path.join("/sys/fs/cgroup", name.removeprefix("name="))
            if not name:  # v2, where a group that has processes can't have limited groups below it: they are beside it.
                top = "/sys/fs/cgroup" if os.path.exists("/sys/fs/cgroup/cgroup.procs") else "/sys/fs/cgroup/unified"
                path = os.path.dirname(path)
            own = top + path.rstrip("/")
            if os.path.isdir(top):
                yield own if os.path.isdir(own) else top  # Inside a container the path may be the host's.


def own_mounts():
    """Mounts of this mount namespace that a sandbox or a test may have made: each has a name of ours in its line."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as lines:
        return {line.split()[4] for line in lines if re.search(r"belljar|/bj-|/pytest-", line)}


class Leftovers:
    """What exists on the host before, compared with what exists after: processes, namespaces, mounts, control groups,
    temporary files, shared memory. Other users of Belljar on this host do not count."""

    def __init__(self):
        self.before = self._look(known=True)

    def _look(self, known=False):
        """With `known` also what belongs to live runs of others: their pids end, and numbers of pids come again."""
        # Not by name or state: a process that sleeps a moment later, or becomes another program, is the same.
        seen = {f"process {pid} since {start}" for pid, (_, _, _, start) in _below().items()}
        own = {os.readlink(path) for path in glob.glob("/proc/self/ns/*")}
        for pid in descendants():
            for path in glob.glob(f"/proc/{pid}/ns/*"):
                with contextlib.suppress(OSError):
                    if os.readlink(path) not in own:
                        seen.add(f"namespace {os.readlink(path)}")
        seen |= {"mount " + path for path in own_mounts()}
        seen |= {"control group " + path for path in self._cgroups(known)}
        for where in {"/tmp", "/var/tmp", "/dev/shm", "/run", os.environ.get("TMPDIR") or "/tmp"}:
            for path in glob.glob(f"{where}/belljar-*"):
                owner = re.search(r"belljar-(\d+)-[0-9a-f]{12}$", path)  # The pid of the belljar that made it.
                with contextlib.suppress(OSError):
                    if owner and os.lstat(path).st_uid == os.geteuid() and (known or not os.path.exists(f"/proc/{owner[1]}")):
                        seen.add("file " + path)
        for table in ("shm", "sem", "msg"):
            with contextlib.suppress(OSError):
                for line in open(f"/proc/sysvipc/{table}", encoding="utf-8").readlines()[1:]:
                    seen.add(f"sysv {table} {line.split()[1]}")
        return seen

    @staticmethod
    def _cgroups(known):
        ours = {str(pid) for pid in descendants()}
        for path, directories, _ in (step for own in own_cgroups() for step in os.walk(own)):
            for name in directories:
                if name.startswith("belljar-"):
                    full = os.path.join(path, name)
                    with contextlib.suppress(OSError):
                        if os.stat(full).st_uid != os.geteuid():
                            continue
                        if known:
                            yield full
                            continue
                        members = set(pathlib.Path(full, "cgroup.procs").read_text().split())
                        owner = name.split("-")[1]  # The belljar that made it; alive and not ours, it is somebody else's.
                        if members & ours or not (members or os.path.exists(f"/proc/{owner}")) or owner in ours:
                            yield full

    def check(self, seconds=PATIENCE):
        """Fails unless all that is new goes away by itself; on an idle machine that takes milliseconds, after a kill -9 of
        everybody the five seconds of SPECIFICATION.md."""
        deadline = time.monotonic() + seconds
        left = None
        while left is None or (left and time.monotonic() < deadline):
            if left is not None:
                time.sleep(0.1)
            self._reap()
            new = self._look() - self.before
            left = new if left is None else left & new  # Others come and go meanwhile; what stays is a leak.
        names = {f"process {pid} since {start}": f" {name} {state}" for pid, (_, name, state, start) in _below().items()}
        if left:
            raise LeftBehind(f"left behind {seconds:g} s later: {sorted(what + names.get(what, '') for what in left)}")

    @staticmethod
    def _reap():
        """Adopted orphans that are dead are only waiting for us. Call it only when no Popen is waited for."""
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
