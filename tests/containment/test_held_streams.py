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

# Takes the lock of its output over and over, until it is told to keep it; then does `way`.
HOLD = (pathlib.Path(__file__).parent / "guests/fill_and_hold.py").read_text() + """
place, way = sys.argv[1], sys.argv[2]
while not os.path.exists(place + '/go'):
    if os.path.exists(place + '/hold'): time.sleep(0.01)
    else: toss()
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


# Two runs share a directory. One takes the lock of a pipe in it, which the other has open and can't close.
SHARED = """
import ctypes, os, socket, sys, time
role, place = sys.argv[1:3]
pipe = os.open(place + '/pipe', os.O_RDWR)
open(f'{place}/{role}', 'w').close()
if role == 'holder':
    while not os.path.exists(place + '/opener'): time.sleep(0.01)
    ours, theirs = socket.socketpair()
    ctypes.CDLL(None).prctl(15, b'holds', 0, 0, 0)  # PR_SET_NAME
    os.splice(ours.fileno(), pipe, 1)
time.sleep(600)
"""


@everywhere
@pytest.mark.parametrize("way", ["interrupt", "wall"])
def test_a_pipe_that_another_run_holds_keeps_nobody(where, way, shared):
    """A process that is killed sleeps where it closes it. That one is still there is told."""
    os.mkfifo(shared / "pipe")
    os.chmod(shared / "pipe", 0o666)
    word = harness.token()

    def run(role, wall):
        return subprocess.Popen([*start(where), "--json", "--rw", shared, "--wall", wall, "--", PYTHON, "-c", SHARED, role, shared, word],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    with run("holder", "600s") as holder:
        try:
            assert harness.wait_until((shared / "holder").exists)
            with run("opener", "600s" if way == "interrupt" else "3s") as opener:
                try:
                    held = harness.wait_until(lambda: sleeps_as("holds", word) or opener.poll() is not None)
                    if way == "interrupt":
                        opener.send_signal(signal.SIGINT)
                    result = json.loads(opener.communicate(timeout=PATIENCE)[0])
                finally:
                    opener.kill()
            assert held and result["verdict"] == {"interrupt": "cancelled", "wall": "timed_out"}[way], result
            # On a machine that is slow the deadline may come before the lock is taken.
            assert way == "wall" or "has not ended yet" in result["message"], result
            assert holder.poll() is None
        finally:
            holder.terminate()


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
