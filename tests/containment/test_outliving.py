"""Ways to outlive the run: each once worked. Trees that grow faster than they are killed, a belljar that is killed, directories
that lock their own remover out.
"""

import contextlib
import ctypes
import os
import signal
import subprocess

import pytest

import harness
from forms import LIBC, command, forms, run_form
from harness import PYTHON, guest


@forms
@pytest.mark.parametrize("way", ["exit", "stay", "burst"])
def test_chain_of_forks_is_caught(form, way):
    """The command ends, is out of time, or is over the process limit, while its tree grows faster than it is killed."""
    for wall in ("100s",) if way == "exit" else ("600ms", "3s", "30s"):  # A busy machine may start it too late for the first.
        word = harness.token()
        result = run_form(form, "--wall", wall, "--processes", "256" if way == "burst" else "4000", "--",
                          guest("chain"), 3, 150, way, word)
        left = harness.processes_with(word)
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        assert not left, f"{len(left)} processes outlive the run"
        if result["stdout"].startswith("launched") or way == "burst":
            break
    else:
        pytest.fail("it never got going")
    allowed = {"exit": {"exited", "process_limit"}, "stay": {"timed_out", "process_limit"},
               "burst": {"timed_out", "process_limit"}}
    assert result.verdict in allowed[way], result["message"]
    assert result["duration_ms"] < 100_000, "clean-up keeps up with it"  # Or it would last as long as the chain.


def keep_descriptors(pid):
    """Copies of all descriptors of another process, as a copy of it by fork would hold them."""
    pidfd = LIBC.syscall(434, pid, 0)  # pidfd_open
    assert pidfd >= 0, os.strerror(ctypes.get_errno())
    kept = [LIBC.syscall(438, pidfd, int(name), 0) for name in os.listdir(f"/proc/{pid}/fd")]  # pidfd_getfd
    os.close(pidfd)
    assert kept and all(fd >= 0 for fd in kept), os.strerror(ctypes.get_errno())
    return kept


@forms
@pytest.mark.parametrize("keep", ["all", "none"])
def test_guest_dies_with_belljar(form, keep, leftovers):
    """Also when a copy of belljar, forked by another thread of the program that uses it, keeps its sockets open."""
    word = harness.token()
    process = subprocess.Popen(command(form, "--", "/bin/sh", "-c", "trap '' TERM HUP; echo ready; sleep 600; sleep 600", word),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    kept = keep_descriptors(process.pid) if keep == "all" else []
    process.kill()
    process.wait()
    process.stdout.close()
    alive = not harness.wait_until(lambda: not harness.processes_with(word))
    for pid in harness.processes_with(word):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    for fd in kept:
        os.close(fd)
    assert not alive, "the guest lives on without belljar"


@forms
def test_locked_private_directory_is_removed(form, leftovers):
    """In the form without namespaces the private directory is a real one. Here nothing needs chmod, which may be refused."""
    code = "import os\nos.makedirs('d/e')\nopen('d/e/f', 'w').close()\nos.umask(0o777)\nos.mkdir('locked')\nos.mkdir('d/e/locked')\n" \
           "for name in ('d/e', 'd', '.'):\n  try: os.chmod(name, 0)\n  except OSError: pass\nprint(os.getcwd())"
    result = run_form(form, "--", PYTHON, "-c", code)
    assert result.verdict == "exited" and result["exit_code"] == 0, result
    if form == "landlock-only":
        assert not os.path.lexists(result["stdout"].strip())
    leftovers.check()
