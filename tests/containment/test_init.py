"""Sandbox init, which may be of the same user as the guest: ways to reach it that once worked.
"""

import errno
import re
import signal
import subprocess

import pytest

import harness
from forms import FORMS, answers, everywhere, run_form
from harness import guest, inside, run_json


def poke(where):
    result = run_form(where, "--", guest("poke"), 0) if where == "landlock-only" else \
        run_json(*inside("process" if where == "process" else "kernel", "poke", 1))
    assert result.verdict == "exited" and result["exit_code"] == 6 and result["stdout"].endswith("alive\n"), result
    ways = answers(result["stdout"])
    assert len(ways) > 50
    return ways


@everywhere
def test_guest_can_not_end_init(where):
    """Not even with a signal whose sender is forged to be the kernel: poke() wants the exit status of the command."""
    ways = poke(where)
    forged = [way for way, error in ways.items() if error == 0 and re.search("signal|sigqueue", way)]
    assert where != "landlock-only" or not forged, "there init is a process of the host"


@pytest.mark.parametrize("where", FORMS)  # Level process has no filter, and its init is a process like any other.
def test_guest_can_not_slow_init_down(where):
    """Init keeps the deadline and cleans up; its limits and its share of the CPU are not the guest's to change."""
    changed = [way for way, error in poke(where).items() if error == 0 and not re.search("signal|sigqueue", way)]
    assert not changed, f"init is changed by {changed}"


def test_guest_that_reaches_works_outside():
    """The control of the tests above."""
    with subprocess.Popen(["/bin/sleep", "600"]) as process:
        ways = answers(harness.outside("poke", process.pid).stdout)
        ended = harness.wait_until(process.poll)
        process.kill()
    assert ended in (-signal.SIGTERM, -signal.SIGXCPU)
    assert ways["rt_sigqueueinfo-15--1"] == 0
    for way in ("prlimit-nofile", "setpriority"):
        assert ways[way] in (0, errno.ESRCH), "refused outside too, so the tests above show nothing"
