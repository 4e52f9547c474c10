"""A guest that holds the lock of its own output: splice() from a socket to which nothing comes sleeps with it, and whoever
reads the pipe sleeps too, deaf to signals. What ends runs must not be who reads.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

import harness
from forms import everywhere, start
from harness import BELLJAR, PATIENCE, PYTHON

# Fills the pipe and takes its lock over and over, until it is told to keep it; then does `way`.
HOLD = """
import os, socket, sys, time
place, way = sys.argv[1], sys.argv[2]
pairs = [socket.socketpair() for _ in range(4)]
for ours, theirs in pairs:
    theirs.setblocking(False)
    if os.fork() == 0:
        while True:
            os.write(1, b'x' * 4096)
            os.splice(ours.fileno(), 1, 1)
while not os.path.exists(place + '/go'):
    if not os.path.exists(place + '/hold'):
        for _, theirs in pairs:
            try: theirs.send(b'x')
            except BlockingIOError: pass
    time.sleep(0.01)
held = []
while way == 'cpu_time': pass
while way == 'memory':
    held.append(b'x' * (4 << 20))
    time.sleep(0.01)
time.sleep(600)
"""


def sleeping_threads(pid):
    """Those that no signal wakes."""
    found = set()
    for path in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            if (path / "stat").read_text().rsplit(")", 1)[1].split()[0] == "D":
                found.add(path.name)
    return found


def is_held(pid):
    """For some time and by the same thread: the control that the attack works."""
    seen = sleeping_threads(pid)
    for _ in range(20):
        time.sleep(0.01)
        seen &= sleeping_threads(pid)
    return bool(seen)


@contextlib.contextmanager
def held_run(way, place, word, *options):
    (place / "hold").unlink(missing_ok=True)
    with open(place / "out", "wb") as out, subprocess.Popen(
            [BELLJAR, "run", *options, "--rw", place, "--wall", "600s", "--", PYTHON, "-c", HOLD, place, way, word],
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE) as process:
        def held():
            (place / "hold").touch()
            if is_held(process.pid):
                return True
            (place / "hold").unlink()
            time.sleep(0.02)
            return process.poll() is not None

        try:
            assert harness.wait_until(held) and process.poll() is None, "nobody sleeps at the pipe"
            (place / "go").touch()
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("way", ["interrupt", "cpu_time", "memory"])
def test_a_held_stream_keeps_no_limit_from_acting(way, shared):
    options = {"interrupt": (), "cpu_time": ("--cpu-time", "300ms"), "memory": ("--memory", "96M")}[way]
    with held_run(way, shared, harness.token(), "--json", *options) as process:
        if way == "interrupt":
            process.send_signal(signal.SIGINT)
        process.wait(timeout=PATIENCE)
    verdict = json.loads((shared / "out").read_text())["verdict"]
    assert verdict == {"interrupt": "cancelled", "memory": "out_of_memory"}.get(way, way)


def test_a_held_stream_keeps_no_guest_alive(shared):
    """A process that is killed closes its files one by one, and sleeps at this one."""
    word = harness.token()
    with held_run("sleep", shared, word) as process:
        assert harness.processes_with(word)
        process.kill()
        assert harness.wait_until(lambda: not harness.processes_with(word)), "the guest outlives belljar"
        process.wait(timeout=PATIENCE)


# Two runs share a directory. One holds the lock of a pipe in it, which the other has open and can't close.
SHARED = """
import os, socket, sys, time
role, where = sys.argv[1:]
pipe = os.open(where + '/pipe', os.O_RDWR)
open(f'{where}/{role}', 'w').close()
while not os.path.exists(where + '/opener'): time.sleep(0.01)
if role == 'holder':
    ours, theirs = socket.socketpair()
    os.splice(ours.fileno(), pipe, 1)
time.sleep(600)
"""


@everywhere
def test_a_pipe_that_another_run_holds_keeps_no_deadline_from_acting(where, shared):
    os.mkfifo(shared / "pipe")
    os.chmod(shared / "pipe", 0o666)

    def run(role, wall):
        return subprocess.Popen([*start(where), "--json", "--rw", str(shared), "--wall", wall, "--", PYTHON, "-c", SHARED, role, str(shared)],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    with run("holder", "600s") as holder:
        try:
            assert harness.wait_until((shared / "holder").exists)
            with run("opener", "1s") as opener:
                result = json.loads(opener.communicate(timeout=PATIENCE)[0])
            assert result["verdict"] == "timed_out" and holder.poll() is None, result
        finally:
            holder.terminate()


# Takes the lock of its empty output before anybody waits for it, and is called so when it does nothing else any more.
HOLD_QUIETLY = """
import ctypes, os, socket
ours, theirs = socket.socketpair()
ctypes.CDLL(None).prctl(15, b'holds', 0, 0, 0)  # PR_SET_NAME
os.splice(ours.fileno(), int(os.environ['FD']), 1)
"""


def sleeps_as(name, word):
    with contextlib.suppress(OSError):
        for pid in harness.processes_with(word):
            if pathlib.Path(f"/proc/{pid}/stat").read_text().split("(", 1)[1].startswith(f"{name}) S"):
                return True
    return False


@pytest.mark.parametrize("stream", [1, 2])
@pytest.mark.parametrize("level", ["process", "kernel"])
def test_a_stream_held_from_the_beginning_keeps_no_guest_alive(level, stream):
    """Whichever of belljar's threads ends last closes its files."""
    for _ in range(5):
        word = harness.token()
        with subprocess.Popen([BELLJAR, "run", "--level", level, "--wall", "600s", "--env", f"FD={stream}", "--", PYTHON, "-c",
                               HOLD_QUIETLY, word], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            try:
                assert harness.wait_until(lambda: sleeps_as("holds", word))
                process.kill()
                assert harness.wait_until(lambda: not harness.processes_with(word)), "the guest outlives belljar"
            finally:
                for pid in harness.processes_with(word):
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                process.kill()
