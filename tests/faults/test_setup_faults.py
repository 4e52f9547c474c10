"""Every system call of the set-up is made to fail in turn, by strace: the payload must never run under a wall with a hole
in it, and the message must name the step that failed.

The rule for each injected failure: either the payload never ran and the verdict is Belljar's own (failed, refused), or it
ran with exactly the guards of an undisturbed run (the call did not matter: a clean-up, a look at an optional file), or the
receipt says which guard is missing and why (the call was the question whether the host has it)."""
import collections
import json
import os
import re
import shutil
import subprocess
import tempfile

import pytest

BELLJAR = os.environ.get("BELLJAR", "build/test/src/cli/belljar")
LONG = os.environ.get("BELLJAR_LONG") == "1"

# The calls that build the wall. Not close, read, exit and the like, whose failure can't weaken it.
SETUP = """clone clone3 unshare mount umount2 pivot_root fsopen fsconfig fsmount open_tree move_mount mount_setattr openat2
mkdirat mknodat symlinkat unlinkat fchownat chdir fchdir sethostname setgroups setresgid setresuid capset prctl prlimit64
landlock_create_ruleset landlock_add_rule landlock_restrict_self seccomp close_range setsid dup2 ioctl socket socketpair
pipe2 mkdir fchown write sendmsg signalfd4 epoll_create1 epoll_ctl execve""".split()
MOST_EACH = 1000 if LONG else 6


def run(prefix, marker_directory):
    command = [*prefix, BELLJAR, "run", "--json", "--rw", f"{marker_directory}:/workspace", "--",
               "/bin/sh", "-c", "echo ran > /workspace/marker"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    lines = [line for line in done.stdout.decode().splitlines() if line.startswith("{")]
    result = json.loads(lines[-1]) if lines else None
    ran = os.path.exists(os.path.join(marker_directory, "marker"))
    if ran:
        os.unlink(os.path.join(marker_directory, "marker"))
    return done.returncode, result, ran, done.stderr.decode()


def guards(result):
    # The host uid is another one for each run.
    return [(g["guard"], g["state"], re.sub(r"uid \d+", "uid N", g["by"])) for g in result["receipt"]["guards"]]


@pytest.fixture(scope="module")
def baseline():
    if shutil.which("strace") is None:
        pytest.fail("strace is needed; tools/packages.txt lists it")
    directory = tempfile.mkdtemp(prefix="bj-faults-")
    log = os.path.join(directory, "log")
    code, result, ran, _ = run(["strace", "-f", "-qq", "-o", log], directory)
    assert code == 0 and ran and result["verdict"] == "exited"
    calls = collections.Counter()
    per_process = collections.defaultdict(collections.Counter)
    started = False
    with open(log) as lines:
        for line in lines:
            pid, _, rest = line.partition(" ")
            name = rest.strip().split("(")[0]
            if rest.strip().startswith('execve("/bin/sh"'):
                started = True
            if not started:
                per_process[pid][name] += 1
    for counts in per_process.values():
        for name, count in counts.items():
            calls[name] = max(calls[name], count)
    yield directory, calls, guards(result)
    shutil.rmtree(directory)


def moments(count):
    if count <= MOST_EACH:
        return range(1, count + 1)
    step = count / MOST_EACH
    return sorted({1, count, *(int(1 + i * step) for i in range(MOST_EACH))})


@pytest.mark.parametrize("call", SETUP)
def test_failing_call_never_lets_the_payload_out(baseline, call):
    directory, calls, wall = baseline
    if calls[call] == 0:
        pytest.skip(f"vacuous: this form makes no {call} call")
    stopped = 0
    for moment in moments(calls[call]):
        code, result, ran, errors = run(
            ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:error=EPERM:when={moment}"],
            directory)
        where = f"{call} number {moment}: exit {code}, {result and (result['verdict'], result['message'])}, {errors}"
        if ran:
            assert result is not None, where
            missing = [g for g in result["receipt"]["guards"]
                       if (g["guard"], g["state"], re.sub(r"uid \d+", "uid N", g["by"])) not in wall]
            assert len(result["receipt"]["guards"]) == len(wall), f"ran with a hole: {where}"
            assert all(g["state"] in ("absent", "partial") and g["reason"] for g in missing), f"ran with a hole: {where}"
            continue
        stopped += 1
        assert code != 0, where
        if result is not None:
            assert result["verdict"] in ("failed", "refused") or result["exit_code"] in (126, 127), where
            assert len(result["message"]) > 10, where
    print(f"{call}: {calls[call]} calls, {stopped} failures stopped the launch")


def test_control_a_wall_call_stops_the_launch(baseline):
    """The rule above would hold trivially if nothing was ever injected."""
    directory, _, _ = baseline
    code, result, ran, _ = run(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=seccomp", "-e",
                                "inject=seccomp:error=EPERM:when=1"], directory)
    assert not ran and code == 125 and result["verdict"] == "failed"
    assert "seccomp" in result["message"], result["message"]
