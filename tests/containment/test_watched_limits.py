"""Limits that a watcher keeps, where no control group does: ways around them that once worked.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile

import pytest

import harness
from forms import forms, run_form
from harness import BELLJAR, PYTHON, guest


if harness.IS_ROOT:
    HOLD = """
import ctypes, sys, time
if sys.argv[1] == 'hidden': ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
held = bytearray(b'x') * (200 << 20)
time.sleep(600)
print('held', len(held) >> 20)
"""

    @pytest.fixture
    def unprivileged_copy():
        """The program and forbid_userns, where a user other than root can start them."""
        directory = tempfile.mkdtemp(prefix="bj-attack-")
        os.chmod(directory, 0o755)
        shutil.copy(BELLJAR, f"{directory}/belljar")
        shutil.copy(guest("forbid_userns"), directory)
        yield directory
        shutil.rmtree(directory)

    @pytest.mark.parametrize("form", ["namespaces", "landlock-only"])
    @pytest.mark.parametrize("dumpable", ["plain", "hidden"])
    @pytest.mark.parametrize("options", ["hidepid=invisible", "hidepid=noaccess", "hidepid=ptraceable"])
    def test_watched_limits_do_not_fail_open(form, dumpable, options, unprivileged_copy):
        """On a host whose /proc hides processes, who can't look must not take that for nothing to see."""
        # A proc of its own, not a remount: that would change the host's.
        script = f'mount -t proc -o {options} proc /proc && exec setpriv --reuid=65534 --regid=65534 --clear-groups -- "$@"'
        prefix = [f"{unprivileged_copy}/forbid_userns"] if form == "landlock-only" else []
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", *prefix, f"{unprivileged_copy}/belljar", "run", "--json",
                               "--memory", "64M", "--wall", "100s", "--", PYTHON, "-c", HOLD, dumpable], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, cwd="/", timeout=2 * harness.PATIENCE)
        result = json.loads(done.stdout)
        assert result["verdict"] in ("out_of_memory", "refused", "failed"), result
        assert "held" not in result["stdout"]
        assert result["message"]


# The first thread ends, and another goes on and stays.
LEADERLESS = """
import ctypes, threading, time
def hoard():
    held = b'x' * (400 << 20)
    time.sleep(600)
threading.Thread(target=hoard).start()
ctypes.CDLL(None).syscall({exit}, 0)
"""
LOCKS = """
import ctypes, fcntl, os, struct, sys, time
if sys.argv[1] == 'undumpable': ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
for number in range(10):
    file = os.open(f'locked-{number}', os.O_RDWR | os.O_CREAT)
    for i in range(3000):
        fcntl.fcntl(file, fcntl.F_SETLK, struct.pack('hhqqi4x', fcntl.F_WRLCK if i & 1 else fcntl.F_RDLCK, 0, i, 1, 0))
time.sleep(600)
"""


@forms
def test_memory_of_a_process_without_its_first_thread(form):
    """Its numbers in /proc are all 0."""
    code = LEADERLESS.replace("{exit}", "60" if os.uname().machine == "x86_64" else "93")
    result = run_form(form, "--memory", "64M", "--wall", "100s", "--", PYTHON, "-c", code)
    assert result["verdict"] == "out_of_memory", result


@forms
def test_a_child_that_has_its_parents_memory_is_not_counted_twice(form):
    # As between vfork() and exec, but long enough to be looked at.
    code = ("import ctypes, mmap, os, signal\n"
            "held = bytearray(b'x') * (170 << 20); stack = mmap.mmap(-1, 65536); libc = ctypes.CDLL(None)\n"
            "top = ctypes.addressof(ctypes.c_char.from_buffer(stack)) + 65536\n"
            "pid = libc.clone(ctypes.cast(libc.usleep, ctypes.c_void_p), ctypes.c_void_p(top), 0x100 | signal.SIGCHLD, ctypes.c_void_p(500000))\n"
            "os.waitpid(pid, 0); print('fine', len(held))")
    result = run_form(form, "--memory", "300M", "--wall", "100s", "--", PYTHON, "-c", code)
    assert result["verdict"] == "exited" and result["stdout"].startswith("fine"), result


@forms
@pytest.mark.parametrize("way", ["plain", "undumpable"])
def test_locks_of_a_process_that_hides(form, way):
    result = run_form(form, "--memory", "64M", "--wall", "100s", "--", PYTHON, "-c", LOCKS, way)
    assert result["verdict"] == "out_of_memory" and "locks of files" in result["message"], result


if not harness.IS_ROOT:
    def test_a_program_that_nobody_may_read():
        """By Landlock alone a process that runs it can't be looked into: who hides so is ended, not taken for harmless."""
        code = ("import os; out = os.open('s', os.O_CREAT | os.O_WRONLY, 0o111); os.write(out, open('/bin/sleep', 'rb').read()); "
                "os.close(out); os.execv('./s', ['s', '600'])")
        result = run_form("landlock-only", "--memory", "64M", "--wall", "100s", "--", PYTHON, "-c", code)
        assert result["verdict"] == "failed" and "watched" in result["message"], result


WRITE = """
import os, sys, time
way, held = sys.argv[1], []
if way == 'locked':  # Its owner may write there, and can't list it.
    os.umask(0o400)
    os.mkdir('d')
    os.chdir('d')
    os.umask(0o022)
for i in range(1 if way == 'one' else 24):
    held.append(os.open(f'f{i}', os.O_RDWR | os.O_CREAT, 0o600))
    if way == 'unlinked': os.unlink(f'f{i}')
    try:
        for _ in range(96 if way == 'one' else 4):
            os.write(held[-1], b'x' * (1 << 20))
            time.sleep(0.005)
    except OSError: break
time.sleep(600 if way in ('many', 'locked') else 0.3)  # The watcher must see those, however late it looks.
print('wrote', sum(os.fstat(fd).st_blocks for fd in held) // 2048)
"""

# Files and directories that come and go while the watcher walks among many that stay.
CHURN = """
import os, time
for i in range(3000): open(f's{i}', 'w').close()
end = time.monotonic() + 1.5
os.fork()
pid = os.getpid()
while time.monotonic() < end:
    for i in range(20):
        open(f'{pid}-{i}', 'w').close()
        os.makedirs(f'{pid}-d{i}/e')
    for i in range(20):
        os.unlink(f'{pid}-{i}')
        os.rmdir(f'{pid}-d{i}/e')
        os.rmdir(f'{pid}-d{i}')
try: os.wait()
except ChildProcessError: os._exit(0)
print('fine')
"""

if not harness.IS_ROOT:
    @pytest.mark.parametrize("way", ["many", "one", "unlinked", "locked"])
    def test_watched_disk_limit(way):
        """What the watcher can't see it must not count as nothing: it ends the run, or the receipt tells of the gap."""
        result = run_form("landlock-only", "--disk", "8M", "--wall", "100s", "--", PYTHON, "-c", WRITE, way)
        line = harness.guard(result, "disk limit")
        assert line["state"] == "partial"
        if way in ("many", "locked"):
            assert result.verdict == "disk_limit" and "wrote" not in result["stdout"], result
        if way == "one":
            assert result.verdict == "disk_limit" or int(result["stdout"].split()[1]) <= 9, result
        if way == "unlinked" and result.verdict != "disk_limit":
            assert result["stdout"] == "wrote 96\n" and re.search("unlinked|deleted|removed", line["reason"]), (result, line)

    def test_watched_disk_limit_blames_nobody_else():
        """A file that is gone before it could be looked at is no sign of a guest that hides something."""
        result = run_form("landlock-only", "--", PYTHON, "-c", CHURN)
        assert result.verdict == "exited" and result["stdout"] == "fine\n", result
