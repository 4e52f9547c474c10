"""Processes that are stopped and clocks that jump: deadlines hold, and there is one verdict.

SIGSTOP comes from outside (a debugger, a user's Ctrl-Z, a frozen container); a guest can't send it.
"""

import concurrent.futures
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
from test_kill import command_name, process_of, state_of

pytestmark = pytest.mark.long
WALL = 6  # Seconds: for the guest to say that it runs, and for the test to do something about it.
FORMS = [form for form in injection.FORMS if form != "terminal"]
TREE = "trap '' TERM HUP; (setsid sleep 600; :) & echo ready > {ready}; sleep 600; :"


@pytest.fixture
def started(shared, leftovers):
    """Starts a run that would last ten minutes, but for its deadline; gives it once its guest runs. What is left is looked for
    when all of them are ended."""
    processes = []

    def start(form, tree=TREE):
        prefix, level = injection.FORMS[form]
        word, ready = harness.token(), shared / "ready"
        with contextlib.suppress(FileNotFoundError):
            ready.unlink()
        mounts = ["--rw", str(shared)] if level[1] == "kernel" else []
        process = subprocess.Popen([*[guest(name) for name in prefix], harness.BELLJAR, "run", "--json", *level, *mounts, "--wall", f"{WALL}s", "--",
                                    "/bin/sh", "-c", tree.format(ready=ready), word],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        assert harness.wait_until(ready.exists), process.poll()
        return process, word

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def only_guests(process, word):
    """The guest's processes that live: belljar has the word on its command line too."""
    return set(harness.processes_with(word)) - {process.pid}


def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    assert harness.wait_until(lambda: state_of(pid) == "T"), state_of(pid)


def only_result(process):
    output, errors = process.communicate(timeout=harness.PATIENCE)
    assert output.count("\n") == 1, f"one result: {output!r}, {errors!r}"
    return json.loads(output)


@pytest.mark.parametrize("form", FORMS)
def test_belljar_is_stopped(form, started, faults):
    """Init keeps the deadline: as long as its parent is stopped nobody else could."""
    process, word = started(form)
    stop(process.pid)
    assert harness.wait_until(lambda: not only_guests(process, word)), "the guest outlives its deadline"
    assert state_of(process.pid) == "T"
    time.sleep(1)  # Well past the deadline of the parent's own.
    os.kill(process.pid, signal.SIGCONT)
    result = only_result(process)
    assert result["verdict"] == "timed_out" and process.returncode == 124, result
    faults.record("SIGSTOP of belljar until the deadline", form, "the guest died, one verdict: timed_out")


@pytest.mark.parametrize("form", FORMS)
def test_belljar_is_stopped_before_the_guest_ends(form, started, shared, faults):
    """An exit that nobody looks at stays an exit, however late it is seen."""
    go = shared / "go"
    process, word = started(form, f"echo ready > {{ready}}; while [ ! -e {go} ]; do sleep 0.02; done; exit 5")
    stop(process.pid)
    go.touch()
    assert harness.wait_until(lambda: not only_guests(process, word)), "the guest does not end"
    time.sleep(WALL + 1)  # Past the deadline, whenever it began.
    os.kill(process.pid, signal.SIGCONT)
    result = only_result(process)
    assert (result["verdict"], result["exit_code"]) == ("exited", 5), result
    faults.record("SIGSTOP of belljar past the deadline", form, "an exit before the deadline is told as such")


@pytest.mark.parametrize("form", FORMS)
def test_init_is_stopped(form, started, faults):
    """The parent has a deadline of its own, a little later. Without a pid namespace it gives init 6 s to end its processes."""
    process, word = started(form)
    stop(process_of(process, "init"))
    result = only_result(process)
    assert result["verdict"] == "timed_out", result
    if not harness.wait_until(lambda: not harness.processes_with(word)):
        raise harness.LeftBehind("the guest lives on")
    faults.record("SIGSTOP of init", form, "ended by its parent, one verdict: timed_out")


@pytest.mark.parametrize("form", FORMS)
def test_init_is_stopped_at_each_call_from_the_start_of_the_command(form, faults, leftovers):
    """Between the guest's first instruction and init's own end there is no call at which the parent relies on init alone."""
    with injection.Injector(form) as injector:
        usual = injector.run()
        init = [call for call in usual.calls if injection.who(call, usual.calls, usual.guests) == "init"]
        last = max(index for index, call in enumerate(init) if injection.call_name(call.number) in ("clone", "clone3", "vfork"))
        calls = init[last:-1]  # From the return of the clone; there is no return from the end.
        assert len(calls) > 5, init

        def one(call):
            seen = injector.run(call.role, call.nth, "stop", run=("--wall", "2s"))
            told = seen.verdict if seen.status != injection.HANGS else "hangs"
            outcome = told if told in ("exited", "timed_out") else f"wrong at {injection.call_name(call.number)}: {seen}"
            faults.record("SIGSTOP of init from the start of the command on", form, outcome)
            return outcome

        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            outcomes = list(pool.map(one, calls))
    assert set(outcomes) <= {"exited", "timed_out"}, outcomes  # How many calls there are is not the same each time.
    assert outcomes[0] == "timed_out", outcomes
    leftovers.check()


@pytest.mark.parametrize("form", FORMS)
def test_janitor_is_stopped(form, started, faults):
    process, _ = started(form)
    janitor = process_of(process, "janitor")
    if janitor is None:
        return  # Nothing of this form is on the host that would have to be removed.
    stop(janitor)
    result = only_result(process)
    assert result["verdict"] == "timed_out", result
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
def test_clock_jumps_by_a_day(level, jump, tmp_path, shared, faults, leftovers):
    offset, ready = tmp_path / "offset", shared / "ready"
    offset.write_text("+0")
    began = time.monotonic()
    mounts = ["--rw", str(shared)] if level == "kernel" else []
    process = subprocess.Popen([guest("belljar_dynamic"), "run", "--json", "--level", level, *mounts, "--wall", "3s", "--", "/bin/sh", "-c",
                                f": > {ready}; sleep 600; :"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=faked(offset))
    assert harness.wait_until(ready.exists), process.poll()
    offset.write_text(f"{jump:+d}")
    result = only_result(process)  # It would come a day later if the deadline moved with the clock, or at once.
    took = time.monotonic() - began
    assert result["verdict"] == "timed_out", result
    assert took > 2.9 and 2900 < result["duration_ms"] < 1000 * harness.PATIENCE, f"{took:.2f} s, {result['duration_ms']} ms"
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
