"""THREATS D: guests that fork without end or refuse to die: all of it ends, and the host goes on meanwhile.

Every attack first runs outside, bounded, to show that it does what it says. Who ended a run is told by its verdict: where it must
not be the deadline, that is far away.
"""

import os
import select
import signal
import subprocess
import time

import pytest

import harness
from harness import PATIENCE, by_cgroup, inside, outside, run_json
from levels import both, deadlines, FAR

pytestmark = pytest.mark.usefixtures("leftovers")


# -- 50 fork bombs ------------------------------------------------------------------------------------------------------

@both
@pytest.mark.parametrize("way", ["wait", "churn"])
def test_fork_bomb(level, way):
    assert "made 50" in outside("fork_bomb", way, 50).stdout
    result = run_json("--processes", "40", *FAR, *inside(level, "fork_bomb", way))
    assert result.verdict == "process_limit", "it is the first refused fork that ends it, not the deadline"
    assert "--processes" in result["message"]
    assert result["usage"]["processes_peak"] <= 40 or not by_cgroup(result, "process limit"), result["usage"]
    assert any(d["kind"] == "limit" and d["grant"] == "--processes" for d in result["denials"])


def test_shell_fork_bomb():
    result = run_json("--processes", "64", *FAR, "--", "/bin/bash", "-c", ":(){ :|:& };:; sleep 20")
    # Without a cgroup the bomb may have choked on RLIMIT_NPROC and ended before the watcher looked.
    assert result.verdict == "process_limit" or (result.verdict == "exited" and not by_cgroup(result, "process limit")), result


def test_host_can_fork_while_a_bomb_runs():
    bomb = subprocess.Popen([harness.BELLJAR, "run", "--processes", "200", *FAR, *inside("kernel", "fork_bomb", "churn")],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    done = 0
    while bomb.poll() is None or done < 20:
        assert subprocess.run(["/bin/true"]).returncode == 0
        done += 1
    assert "process_limit" in bomb.communicate()[1]


# -- 51 to 54 outliving the run --------------------------------------------------------------------------------------------

def heartbeats(path):
    return [int(line) for line in path.read_text().split()]


def outlive_arguments(level, way, path, word):
    """The heartbeat goes through a writable mount, so that the host can read when the last process died."""
    if level == "kernel":
        return ["--rw", f"{path.parent}:/shared", *inside(level, "outlive", way, "/shared/" + path.name, word)]
    return inside(level, "outlive", way, path, word)


@both
@pytest.mark.parametrize("way", ["plain", "sigterm", "daemon", "stopped", "many"])
def test_deadline_kills_the_whole_tree(level, way, shared):
    for wall in deadlines(200):
        word, path = harness.token(), shared / f"beats-{wall}"
        path.touch()
        path.chmod(0o666)
        result = run_json("--wall", wall, *outlive_arguments(level, way, path, word))
        size = path.stat().st_size
        survivors = harness.processes_with(word)
        assert result.verdict == "timed_out", result
        assert result.status == 124
        assert "--wall" in result["message"]
        assert not survivors, f"alive when belljar returned: {survivors}"
        assert path.stat().st_size == size, "something wrote when belljar had returned"
        beats = heartbeats(path)
        if len(beats) >= (1 if way == "stopped" else 20):  # Those are silent by nature.
            break
    else:
        pytest.fail("it never got going")
    late = (max(beats) - min(beats)) / 1e6 - int(wall.removesuffix("ms"))
    print(f"{level} {way}: the last process died {late:.1f} ms after the deadline")  # Soon, says SPECIFICATION.md; no test of load.


def test_control_daemon_outlives_a_plain_kill(shared):
    word, path = harness.token(), shared / "beats"
    path.touch()
    process = subprocess.Popen([harness.guest("outlive"), "daemon", str(path), word])
    assert harness.wait_until(lambda: len(harness.processes_with(word)) >= 2 and path.stat().st_size > 200)
    process.kill()
    process.wait()
    size = path.stat().st_size
    harness.wait_until(lambda: path.stat().st_size > size)  # By somebody who outlived it.
    survivors = harness.processes_with(word)
    for pid in survivors:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert survivors and path.stat().st_size > size, "outside a sandbox the daemon must survive, or the tests above show nothing"


@both
def test_daemon_ends_with_the_command(level, shared):
    word, path = harness.token(), shared / "beats"
    began = time.monotonic()
    result = run_json(*FAR, *outlive_arguments(level, "exit", path, word))
    took = time.monotonic() - began
    assert not harness.processes_with(word)
    assert result.verdict == "exited" and result["exit_code"] == 7, result
    assert "the command ends" in result["stdout"]
    assert took < PATIENCE, "a background child that holds the output must not hold the run"  # It would for more than a minute.


@both
def test_background_child_holds_stdout(level):
    # The control: whoever reads to the end waits for the child.
    control = subprocess.Popen(["/bin/sh", "-c", "sleep 600 & echo $!"], stdout=subprocess.PIPE, text=True)
    child = int(control.stdout.readline())
    assert control.wait() == 0 and not select.select([control.stdout], [], [], 0)[0], "outside, the output does not end"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    control.stdout.close()
    result = run_json("--level", level, *FAR, "--", "/bin/sh", "-c", "sleep 600 & echo done")
    assert result.verdict == "exited" and result["stdout"] == "done\n"
    assert result["duration_ms"] < PATIENCE * 1000, "it held the run"


def test_background_child_holds_stdout_when_streaming():
    began = time.monotonic()
    done = harness.belljar(*FAR, "--", "/bin/sh", "-c", "sleep 600 & echo done")
    assert time.monotonic() - began < PATIENCE
    assert done.returncode == 0 and done.stdout == "done\n"
