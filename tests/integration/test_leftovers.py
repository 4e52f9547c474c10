"""Nothing is left behind: after many mixed runs, after kill -9 of belljar at any moment, after several at once.

50 runs and 12 kills; BELLJAR_LONG=1 makes it 1,000, as SPECIFICATION.md says, and 500. tests/faults/test_churn.py does more
runs, in one process.
"""

import collections
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
from harness import inside, run_json

RUNS = 1000 if harness.LONG else 50
KILLS = 500 if harness.LONG else 12

MIX = [
    ("ok", lambda: ["--", "/bin/true"], {"exited"}),
    ("output", lambda: ["--", "/bin/sh", "-c", "echo out; echo err >&2; exit 3"], {"exited"}),
    ("timeout", lambda: ["--wall", "40ms", "--", "/bin/sh", "-c", "sleep 600 & sleep 600"], {"timed_out"}),
    ("crash", lambda: inside("kernel", "crash", "fault"), {"signaled"}),
    ("memory", lambda: ["--memory", "24M", *inside("kernel", "memory", "anonymous", 200)], {"out_of_memory"}),
    ("bomb", lambda: ["--processes", "16", "--wall", "150ms", *inside("kernel", "fork_bomb", "churn")],
     {"process_limit", "timed_out"}),
    ("refused", lambda: ["--net", "full", "--", "/bin/true"], {"refused"}),
    ("missing", lambda: ["--", "/no/such/program"], {"exited"}),
    ("no mount", lambda: ["--ro", "/no/such/directory", "--", "/bin/true"], {"refused"}),
    ("disk", lambda: ["--disk", "1M", "--", "/bin/sh", "-c", "head -c 3M /dev/zero > f"], {"disk_limit"}),
    ("process", lambda: ["--level", "process", "--", "/bin/sh", "-c", "mkdir -p a/b/c; echo x > a/b/c/f; ln -s / a/root; chmod 0 a/b"],
     {"exited"}),
    ("process timeout", lambda: ["--level", "process", "--wall", "40ms", "--", "/bin/sh", "-c", "setsid sleep 600 & sleep 600"],
     {"timed_out"}),
]


def test_mixed_runs_leave_nothing(leftovers):
    chosen = random.Random(1)
    wrong, counts = [], collections.Counter()

    def one(index):
        name, arguments, verdicts = MIX[index % len(MIX)]
        result = run_json(*arguments())
        counts[result.verdict] += 1
        if result.verdict not in verdicts:
            wrong.append((name, result.verdict, result["message"]))

    order = list(range(RUNS))
    chosen.shuffle(order)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(one, order))
    print(dict(counts))
    assert not wrong, f"{len(wrong)} of {RUNS}, such as {wrong[:5]}"
    leftovers.check()


VICTIMS = [
    lambda word: ["--wall", "300s", "--", "/bin/sh", "-c", "sleep 600 & setsid sleep 600 & sleep 600; :", word],
    lambda word: ["--wall", "300s", "--level", "process", "--", "/bin/sh", "-c", "setsid sleep 600 & sleep 600; :", word],
    lambda word: ["--wall", "300s", "--processes", "30", *inside("kernel", "fork_bomb", "churn", "-1", word)],
    lambda word: ["--wall", "300s", "--json", *inside("kernel", "flood", "text", 0, word)],
    lambda word: ["--wall", "300s", "--level", "process", *inside("process", "outlive", "many", "beats", word)[2:]],
]


def nobody_has(word):
    if not harness.wait_until(lambda: not harness.processes_with(word)):
        raise harness.LeftBehind(f"alive {harness.PATIENCE:g} s later: {harness.processes_with(word)}")


def test_kill_9_leaves_nothing(leftovers):
    """At random moments: while it sets up, runs, or cleans up."""
    chosen = random.Random(2)
    word = harness.token()
    for i in range(KILLS):
        process = subprocess.Popen([harness.BELLJAR, "run", *VICTIMS[i % len(VICTIMS)](word)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chosen.choice([0, 0.001, 0.002, 0.003, 0.005, 0.008, 0.012, 0.02, 0.05, 0.1]) * chosen.random())
        process.kill()
        process.wait()
    nobody_has(word)
    leftovers.check()


def test_kill_9_during_set_up(leftovers):
    """The first ten milliseconds are full of helpers: a janitor, holders of namespaces for mapped mounts, a half-built init."""
    chosen = random.Random(3)
    word = harness.token()
    for _ in range(2 * KILLS):
        process = subprocess.Popen([harness.BELLJAR, "run", "--wall", "300s", *inside("kernel", "flood", "text", 0, word)],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.01 * chosen.random())
        process.kill()
        process.wait()
    nobody_has(word)
    leftovers.check()


def test_control_kill_9_of_a_plain_parent_leaves_its_tree():
    before, word = harness.Leftovers(), harness.token()
    process = subprocess.Popen(["/bin/sh", "-c", "/bin/sh -c 'sleep 600; :' " + word + " & wait"], start_new_session=True)
    assert harness.wait_until(lambda: len(harness.processes_with(word)) >= 2)
    process.kill()
    process.wait()
    try:
        assert harness.wait_until(lambda: [pid for pid in harness.processes_with(word) if parent_of(pid) == os.getpid()]), \
            "without a sandbox the tree must survive, or the test above shows nothing"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
    before.check()


def parent_of(pid):
    with contextlib.suppress(OSError):
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return None


def name_of(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    return None


@pytest.mark.parametrize("level", ["kernel", "process"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_signals_to_belljar_end_the_tree(level, number, leftovers):
    word = harness.token()
    process = subprocess.Popen([harness.BELLJAR, "run", "--level", level, "--wall", "300s", "--", "/bin/sh", "-c",
                                "setsid sleep 600 & sleep 600; :", word],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert harness.wait_until(lambda: any(name_of(pid) == "sh" for pid in harness.processes_with(word))), process.poll()
    process.send_signal(number)
    stderr = process.communicate(timeout=harness.PATIENCE)[1]
    assert process.returncode == 130, "cancelled"
    assert "cancelled" in stderr
    assert not harness.processes_with(word)


def test_runs_at_once_do_not_mix(leftovers):
    def one(index):
        result = run_json("--", "/bin/sh", "-c", f"echo {index} > file; sleep 0.02; cat file; ls | wc -l")
        return result["stdout"].split() == [str(index), "1"]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(40)))
    leftovers.check()


if not harness.IS_ROOT:  # Root has no form of level kernel without namespaces.
    def test_guest_that_locks_its_own_directory(leftovers):
        """In the form without namespaces the private directory is a real one, and the guest is its owner."""
        # Modes can't be changed in this form, but a directory can be made with a mode that locks everybody out.
        code = "import os; open('f', 'w').close(); os.mkdir('d', 0); os.mkdir('e', 0o100)"
        done = subprocess.run([harness.guest("forbid_userns"), harness.BELLJAR, "run", "--", harness.PYTHON, "-c", code],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=2 * harness.PATIENCE)
        assert done.returncode == 0, done.stderr
        leftovers.check()


def test_leftovers_are_seen(tmp_path):
    """The check itself must be able to fail."""
    before = harness.Leftovers()
    process = subprocess.Popen(["/bin/sleep", "600"])
    with pytest.raises(AssertionError, match="process .* sleep"):
        before.check(0.2)
    process.kill()
    process.wait()
    path = f"/tmp/belljar-{process.pid}-{os.urandom(6).hex()}"
    os.mkdir(path)
    with pytest.raises(AssertionError, match="file /tmp/belljar-"):
        before.check(0.2)
    os.rmdir(path)
    before.check()
