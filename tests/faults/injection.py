"""One run with one fault in it, by the tracer fail_nth, and what was behind the wall if the guest ran nevertheless."""

import collections
import contextlib
import errno
import json
import os
import pathlib
import pty
import re
import subprocess
import tempfile
import threading

import harness
from harness import BELLJAR, GUESTS, guest

# The forms: prefix of the command line, arguments of `run`.
FORMS = {"namespaces": ([], ["--level", "kernel"]), "process-namespaces": ([], ["--level", "process"])}
if not harness.IS_ROOT:  # Root is never without namespaces.
    FORMS["landlock-only"] = (["forbid_userns"], ["--level", "kernel"])
    FORMS["process-plain"] = (["forbid_userns"], ["--level", "process", "--dangerously-share-host-network"])
FORMS["terminal"] = ([], ["--level", "kernel", "--tty"])

ENDED = 7  # Of guest `wall`.
NO_MARKER = 2  # Of guest `wall`, when it may not write where it should.
HANGS = -1000  # Instead of an exit status.
HOST_NAMESPACES = sorted({os.readlink(f"/proc/self/ns/{kind}") for kind in os.listdir("/proc/self/ns")})
_NUMBERS = None

Call = collections.namedtuple("Call", "role parent nth number")


def call_name(number):
    """The name of a system call, from the kernel's own header."""
    global _NUMBERS
    if _NUMBERS is None:
        text = subprocess.run(["cpp", "-dM"], input="#include <asm/unistd_64.h>", capture_output=True, text=True, check=True).stdout
        _NUMBERS = {int(value): name for name, value in re.findall(r"#define __NR_(\w+) (\d+)", text)}
    return _NUMBERS.get(number, str(number))


class Injected:
    """What came of one run. `wall` is None when the guest never ran."""

    def __init__(self, status, output, errors, log, wall):
        self.status, self.errors, self.wall = status, errors, wall
        lines = [line for line in output.splitlines() if line.startswith("{")]
        self.result = None
        with contextlib.suppress(json.JSONDecodeError):  # Half of one, where the write of the rest was made to fail.
            self.result = json.loads(lines[-1]) if lines else None
        assert self.result or not lines or status != ENDED, f"half a result, and no word of it: {output[-200:]!r}"
        self.calls, self.done, self.guests = [], None, set()
        for line in log.splitlines():
            words = line.split()
            if len(words) not in (2, 4):
                continue  # Cut off by the end of a tracer that hung.
            if words[0] == "did":
                self.done = (int(words[1]), int(words[2]), call_name(int(words[3])))
            elif words[0] == "exec":
                self.guests.add(int(words[1]))
            else:
                self.calls.append(Call(*map(int, words)))

    @property
    def call(self):
        """The name of the call that went wrong, if one did."""
        return self.done and self.done[2]

    @property
    def verdict(self):
        return self.result and self.result["verdict"]

    def __str__(self):
        message = self.result and (self.result["verdict"], self.result["message"])
        return f"call {self.done}: exit status {self.status}, {message}, {self.errors[-400:]!r}"


def normal(text):
    """What differs between two runs with the same wall: names of the run, and the order of mounts of others."""
    text = re.sub(r"belljar-\d+-[0-9a-f]{12}", "belljar-ID", text)
    text = re.sub(r"\b([ug]id)=\d{5,}", r"\1=N", text)  # Each guest of root has a uid of its own.
    return re.sub(r"(?m)^NStgid:\t.*", "NStgid", text)


class Injector:
    """Starts runs of one form with one fault each. Safe to use from several threads."""

    def __init__(self, form):
        self.form = form
        self.prefix, self.arguments = FORMS[form]
        self.directory = tempfile.mkdtemp(prefix="bj-faults-")
        os.chmod(self.directory, 0o777)
        self.count = 0
        self.lock = threading.Lock()

    def close(self):
        subprocess.run(["rm", "-rf", self.directory], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def run(self, role=0, nth=0, action="none", **options):
        """One run under the tracer."""
        log = f"{self.directory}/{role}-{nth}-{action}-{os.urandom(4).hex()}.log"
        seen = self.run_under([guest("fail_nth"), log, str(role), str(nth), str(action), "--"], log=log, **options)
        os.unlink(log)
        return seen

    def run_under(self, tool=(), log=None, timeout=2 * harness.PATIENCE, run=(), **options):
        """One run that is started by `tool`, with more arguments for `belljar run`."""
        with self.lock:
            self.count += 1
            place = pathlib.Path(self.directory, str(self.count))
        place.mkdir()
        place.chmod(0o777)
        marker = place / "marker"
        json_form = [] if self.form == "terminal" else ["--json"]
        argv = [*[guest(name) for name in self.prefix], *map(str, tool), BELLJAR, "run", "--wall", f"{harness.PATIENCE:g}s", *json_form,
                *self.arguments, *run]
        if self.arguments[1] == "kernel":
            argv += ["--ro", GUESTS, "--rw", str(place)]
        argv += ["--", guest("wall"), str(marker), *HOST_NAMESPACES]
        start = self._in_terminal if self.form == "terminal" else self._piped
        try:
            status, output, errors = start(argv, timeout, options)
        except subprocess.TimeoutExpired:
            status, output, errors = HANGS, "", "hangs"
        # A guest may outlive a Belljar that was ended by a moment, so its files stay until close().
        wall = normal(marker.read_text()).replace(str(place), "PLACE") if marker.exists() else None
        return Injected(status, output, errors, pathlib.Path(log).read_text() if log else "", wall)

    @staticmethod
    def _piped(argv, timeout, options):
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=timeout, **options)
        return done.returncode, done.stdout, done.stderr

    @staticmethod
    def _in_terminal(argv, timeout, options):
        master, slave = pty.openpty()
        process = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=subprocess.PIPE, text=True, errors="replace",
                                   start_new_session=True, **options)
        os.close(slave)
        try:
            errors = process.communicate(timeout=timeout)[1]  # The guest writes nothing that could fill the terminal.
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            os.close(master)
        return process.returncode, "", errors


def who(call, calls, guests):
    """What a role is called: by whom it was made and what became of it."""
    if call.role == 0:
        return "belljar"
    if call.role in guests:
        return "command before exec"
    if any(other.parent == call.role for other in calls):
        return "init"
    names = {call_name(other.number) for other in calls if other.role == call.role}
    return "janitor" if "read" in names and "prctl" in names else "helper"


def moments(calls, most_alike):
    """All calls; of a row of the same call by the same process only some, spread over it."""
    chosen, row = [], []

    def flush():
        if len(row) <= most_alike:
            chosen.extend(row)
        else:
            step = (len(row) - 1) / (most_alike - 1)
            chosen.extend(row[round(i * step)] for i in range(most_alike))
        row.clear()

    for call in sorted(calls):
        if row and (row[-1].role, row[-1].number) != (call.role, call.number):
            flush()
        row.append(call)
    flush()
    return chosen


def errno_name(number):
    return errno.errorcode[number]
