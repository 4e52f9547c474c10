"""kill -9 of each of Belljar's processes, at system calls drawn by lot and while guests run: nothing is left, and a
run whose init died is `failed`, never a success.

tests/integration/test_leftovers.py kills belljar by the clock; here every process is hit, at exact points.
"""

import concurrent.futures
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import time

import pytest

import harness
import injection
from harness import BELLJAR, guest

POINTS = 200 if harness.LONG else 8  # For each process and form.
RUNNING = 200 if harness.LONG else 4
FORMS = [form for form in injection.FORMS if form != "terminal"]
WITHOUT_PID_NAMESPACE = ("landlock-only", "process-plain")


@pytest.fixture(scope="module", params=FORMS)
def undisturbed(request):
    with injection.Injector(request.param) as injector:
        usual = injector.run()
        assert usual.status == injection.ENDED and usual.wall, usual
        yield injector, usual


def reports(injected, until=None):
    """How many reports init and the command made before the kill struck."""
    count = 0
    for call in injected.calls:
        if until is not None and (call.role, call.nth) == until:
            break
        count += injection.call_name(call.number) == "sendmsg"
    return count


def judge(who, seen, usual):
    if who == "belljar":
        assert seen.status in (128 + signal.SIGKILL, injection.ENDED), str(seen)
        return "gone with all it had started"
    if who in ("janitor", "helper"):
        assert seen.status == injection.ENDED or seen.verdict == "failed", str(seen)
        return "the run went on" if seen.status == injection.ENDED else "failed"
    assert seen.result is not None, str(seen)
    if who == "init" and reports(seen, seen.done[:2]) >= reports(usual):  # It had told how the command ended.
        assert seen.verdict == usual.verdict, str(seen)
        return "the run was over"
    allowed = ("failed",) if who == "init" else ("failed", "signaled")
    assert seen.verdict in allowed and seen.status != 0 and seen.result["message"], str(seen)
    return f"verdict {seen.verdict}"


@pytest.mark.parametrize("who", ["belljar", "init", "janitor", "command before exec"])
def test_kill_9_at_a_system_call(undisturbed, who, faults, leftovers):
    injector, usual = undisturbed
    calls = [call for call in usual.calls if injection.who(call, usual.calls, usual.guests) == who and (call.role, call.nth) > (0, 1)]
    if not calls:
        assert who == "janitor", f"no {who} to kill"
        return  # Nothing of this form is on the host that would have to be removed.
    lot = random.Random(4)
    chosen = calls if len(calls) <= POINTS else lot.sample(calls, POINTS)
    wrong = []

    def one(call):
        seen = injector.run(call.role, call.nth, "kill")
        try:
            outcome = judge(who, seen, usual) if seen.done else "not reached"
        except AssertionError as problem:
            wrong.append(str(problem))
            outcome = "wrong"
        faults.record("kill -9 at a system call", f"{injector.form}: {who}", outcome)

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(one, chosen))
    assert not wrong, f"{len(wrong)} of {len(chosen)}:\n" + "\n".join(sorted(wrong)[:10])
    leftovers.check()


def children(pid):
    with contextlib.suppress(OSError):
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def command_name(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def state_of(pid):
    """The letter that ps shows; "" when there is no such process."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


TREE = "trap '' TERM HUP; (setsid sleep 600; :) & (sleep 600; :) & echo ready; sleep 600; :"


def start(form, word):
    prefix, arguments = injection.FORMS[form]
    process = subprocess.Popen([*[guest(name) for name in prefix], BELLJAR, "run", *arguments, "--wall", "300s", "--", "/bin/sh", "-c", TREE, word],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n", process.communicate()
    return process


def process_of(process, who):
    """The pid of one of the processes of a running belljar, or None when there is none of that kind."""
    if who == "belljar":
        return process.pid
    others = []

    def told_apart():
        """The janitor takes its name a moment after it was made: until then it looks like init."""
        others[:] = [pid for pid in children(process.pid) if command_name(pid) != "belljar-janitor"]
        return len(others) == 1

    assert harness.wait_until(told_apart), others
    return others[0] if who == "init" else next((pid for pid in children(process.pid) if pid not in others), None)


@pytest.mark.parametrize("who", ["init", "janitor", "belljar"])
@pytest.mark.parametrize("form", FORMS)
def test_kill_9_while_a_guest_runs(form, who, faults, leftovers):
    lot = random.Random(5)
    outcomes = set()
    for _ in range(RUNNING if not (harness.LONG and form == "process-plain") else 50):
        word = harness.token()
        process = start(form, word)
        time.sleep(0.02 * lot.random())
        victim = process_of(process, who)
        if victim is None:
            process.terminate()
            process.communicate(timeout=harness.PATIENCE)
            return  # Nothing of this form is on the host that would have to be removed.
        os.kill(victim, signal.SIGKILL)
        if who == "janitor":
            assert harness.wait_until(lambda: state_of(victim) in ("Z", ""))
            assert process.poll() is None, "the run goes on without its janitor"
            process.terminate()
        errors = process.communicate(timeout=harness.PATIENCE)[1]
        gone = harness.wait_until(lambda: not harness.processes_with(word))
        for pid in harness.processes_with(word):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if who == "init":
            assert process.returncode == 125 and "failed" in errors, (process.returncode, errors)
        else:
            assert process.returncode == {"janitor": 130, "belljar": -signal.SIGKILL}[who], errors
        outcome = "nothing left" if gone else "the guest's processes live on"
        outcomes.add(outcome)
        faults.record("kill -9 while a guest runs", f"{form}: {who}", outcome)
    if outcomes != {"nothing left"}:
        raise harness.LeftBehind(f"the guest's processes live on: {form}, {who}")
