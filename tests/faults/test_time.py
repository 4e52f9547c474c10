"""Processes that are stopped and clocks that jump: deadlines hold, and there is one verdict.

SIGSTOP comes from outside (a debugger, a user's Ctrl-Z, a frozen container); a guest can't send it. A stop lasts 2 s here,
10 s with BELLJAR_LONG=1.
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
import injection
from harness import guest
from test_kill import command_name, process_of

STOP = 10 if harness.LONG else 2
FORMS = [form for form in injection.FORMS if form != "terminal"]
TREE = "trap '' TERM HUP; (setsid sleep 60; :) & echo ready > {ready}; sleep 60; :"


@pytest.fixture
def started(shared):
    """Starts a run that would last a minute; gives it once its guest runs."""
    processes = []

    def start(form, *arguments):
        prefix, level = injection.FORMS[form]
        word, ready = harness.token(), shared / "ready"
        with contextlib.suppress(FileNotFoundError):
            ready.unlink()
        mounts = ["--rw", str(shared)] if level[1] == "kernel" else []
        process = subprocess.Popen([*[guest(name) for name in prefix], harness.BELLJAR, "run", "--json", *level, *mounts, *arguments, "--",
                                    "/bin/sh", "-c", TREE.format(ready=ready), word],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        assert harness.wait_until(ready.exists), process.poll()
        return process, word

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def only_result(process, timeout=20):
    output, errors = process.communicate(timeout=timeout)
    assert output.count("\n") == 1, f"one result: {output!r}, {errors!r}"
    return json.loads(output)


@pytest.mark.parametrize("form", FORMS)
def test_belljar_is_stopped(form, started, faults, leftovers):
    process, word = started(form, "--wall", "700ms")
    os.kill(process.pid, signal.SIGSTOP)
    began = time.monotonic()
    assert harness.wait_until(lambda: not harness.processes_with(word) or set(harness.processes_with(word)) <= {process.pid}, STOP)
    took = time.monotonic() - began
    time.sleep(max(0, STOP - took))
    os.kill(process.pid, signal.SIGCONT)
    result = only_result(process)
    assert result["verdict"] == "timed_out" and process.returncode == 124, result
    assert took < 1.2, f"init keeps the deadline while its parent is stopped: {took:.2f} s"
    faults.record(f"SIGSTOP of belljar for {STOP} s", form, "the guest died in time, one verdict: timed_out")


@pytest.mark.parametrize("form", FORMS)
def test_belljar_is_stopped_before_the_guest_ends(form, faults, leftovers):
    """An exit that nobody looks at stays an exit, however late it is seen."""
    prefix, level = injection.FORMS[form]
    process = subprocess.Popen([*[guest(name) for name in prefix], harness.BELLJAR, "run", "--json", *level, "--wall", "1s", "--",
                                "/bin/sh", "-c", "sleep 0.4; exit 5"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    time.sleep(0.15)
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(STOP)
    os.kill(process.pid, signal.SIGCONT)
    result = only_result(process)
    assert (result["verdict"], result["exit_code"]) == ("exited", 5), result
    faults.record(f"SIGSTOP of belljar for {STOP} s", form, "an exit before the deadline is told as such")


@pytest.mark.parametrize("form", FORMS)
def test_init_is_stopped(form, started, faults, leftovers):
    """The parent has a deadline of its own, a little later. Without a pid namespace it gives init 6 s to end its processes."""
    process, word = started(form, "--wall", "700ms")
    began = time.monotonic()
    os.kill(process_of(process, "init"), signal.SIGSTOP)
    result = only_result(process)
    took = time.monotonic() - began
    assert result["verdict"] == "timed_out", result
    assert harness.wait_until(lambda: not harness.processes_with(word)), "the guest lives on"
    assert took < (1.2 if "namespaces" in form else 8), f"{took:.2f} s"
    faults.record("SIGSTOP of init", form, "ended by its parent, one verdict: timed_out")


@pytest.mark.parametrize("form", FORMS)
def test_janitor_is_stopped(form, started, faults, leftovers):
    process, _ = started(form, "--wall", "700ms")
    janitor = process_of(process, "janitor")
    if janitor is None:
        return  # Nothing of this form is on the host that would have to be removed.
    os.kill(janitor, signal.SIGSTOP)
    began = time.monotonic()
    result = only_result(process)
    assert result["verdict"] == "timed_out" and time.monotonic() - began < 2, result
    assert harness.wait_until(lambda: command_name(janitor) != "belljar-janitor"), "a stopped janitor stays"
    faults.record("SIGSTOP of the janitor", form, "the run ends as ever, and so does the janitor")


# -- the clock ---------------------------------------------------------------------------------------------------------------

DAY = 24 * 60 * 60
LIBRARY = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)


def faked(offset):
    """Environment in which the clock of the day can be set by writing to `offset`; the monotonic one is the kernel's."""
    assert LIBRARY is not None, "faketime is needed; tools/packages.txt lists it"
    return {**os.environ, "LD_PRELOAD": str(LIBRARY), "FAKETIME_TIMESTAMP_FILE": str(offset), "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


@pytest.mark.parametrize("jump", [DAY, -DAY], ids=["forward", "back"])
@pytest.mark.parametrize("level", ["kernel", "process"])
def test_clock_jumps_by_a_day(level, jump, tmp_path, faults, leftovers):
    offset = tmp_path / "offset"
    offset.write_text("+0")
    began = time.monotonic()
    process = subprocess.Popen([guest("belljar_dynamic"), "run", "--json", "--level", level, "--wall", "1s", "--", "/bin/sleep", "30"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=faked(offset))
    time.sleep(0.3)
    offset.write_text(f"{jump:+d}")
    result = only_result(process)
    took = time.monotonic() - began
    assert result["verdict"] == "timed_out", result
    assert 0.9 < took < 2 and 900 < result["duration_ms"] < 1500, f"{took:.2f} s, {result['duration_ms']} ms"
    faults.record("the clock jumps by a day", level, "the deadline held")


def test_control_the_clock_does_jump(tmp_path):
    offset = tmp_path / "offset"
    offset.write_text("+0")
    code = "import time\nprint(time.time(), time.monotonic(), flush=True)\ninput()\nprint(time.time(), time.monotonic())"
    process = subprocess.Popen([harness.PYTHON, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=faked(offset))
    before = list(map(float, process.stdout.readline().split()))
    offset.write_text(f"{DAY:+d}")
    after = list(map(float, process.communicate("\n")[0].split()))
    assert abs(after[0] - before[0] - DAY) < 60 and after[1] - before[1] < 60, (before, after)
