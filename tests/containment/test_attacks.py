"""Ways out, around or back in that once worked. Each is tried as it was, and where it can be, outside as a control.

Level kernel has two forms: by namespaces, and by Landlock alone on hosts that forbid those. The second is not for root.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import stat
import subprocess
import tempfile
import termios
import time

import pytest

import harness
from harness import BELLJAR, GUESTS, PYTHON, belljar, guest, inside, run_json

FORMS = ["namespaces"] if harness.IS_ROOT else ["namespaces", "landlock-only"]
forms = pytest.mark.parametrize("form", FORMS)
NOT_RUN = 125
LIBC = ctypes.CDLL(None, use_errno=True)


def command(form, *arguments):
    """`belljar run` in a form; the guests are there under their paths of the host, as Landlock alone can't move them."""
    prefix = [guest("forbid_userns")] if form == "landlock-only" else []
    return [*prefix, BELLJAR, "run", "--ro", GUESTS, *map(str, arguments)]


def start(where):
    """`belljar run` in a form of level kernel, or at level process."""
    return [BELLJAR, "run", "--level", "process"] if where == "process" else command(where)


everywhere = pytest.mark.parametrize("where", [*FORMS, "process"])


def run_form(form, *arguments, timeout=30, **options):
    done = subprocess.run(command(form, "--json", *arguments), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", timeout=timeout, **options)
    assert done.stdout.count("\n") == 1, done
    result = harness.Result(json.loads(done.stdout))
    assert result["verdict"] in ("refused", "failed") or result["receipt"]["form"] == form, result["receipt"]["form"]
    return result


def answers(text):
    """What a guest has printed as "WAY done" and "WAY ERRNO": {way: errno, 0 when it was done}."""
    return {way: 0 if what == "done" else int(what) for way, what in re.findall(r"^(\S+) (done|\d+)$", text, re.M)}


def mistake(done, *words):
    """The caller is told: one line, the status of a run that never was, and what it is about."""
    assert done.returncode == NOT_RUN, done
    assert done.stdout == "" and done.stderr.startswith("belljar: ") and done.stderr.count("\n") == 1, done
    for word in words:
        assert str(word) in done.stderr, done.stderr


def contents(directory):
    return sorted(str(path.relative_to(directory)) for path in pathlib.Path(directory).rglob("*"))


def ignoring(*signals):
    """For preexec_fn: a caller that ignores signals hands that on to whatever it starts."""
    return lambda: [signal.signal(number, signal.SIG_IGN) for number in signals]


# -- outliving the run -----------------------------------------------------------------------------------------------------

@forms
@pytest.mark.parametrize("way", ["exit", "stay", "burst"])
def test_chain_of_forks_is_caught(form, way):
    """The command ends, is out of time, or is over the process limit, while its tree grows faster than it is killed."""
    word = harness.token()
    result = run_form(form, "--wall", "600ms", "--processes", "256" if way == "burst" else "4000", "--",
                      guest("chain"), 3, 8, way, word)
    left = harness.processes_with(word)
    for pid in left:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    assert not left, f"{len(left)} processes outlive the run"
    assert result["stdout"].startswith("launched") or way == "burst"
    allowed = {"exit": {"exited", "process_limit"}, "stay": {"timed_out", "process_limit"},
               "burst": {"timed_out", "process_limit"}}
    assert result.verdict in allowed[way], result["message"]
    assert result["duration_ms"] < 2500, "clean-up keeps up with it"


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
    process = subprocess.Popen(command(form, "--", "/bin/sh", "-c", "trap '' TERM HUP; echo ready; sleep 20; sleep 20", word),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    kept = keep_descriptors(process.pid) if keep == "all" else []
    process.kill()
    process.wait()
    process.stdout.close()
    alive = not harness.wait_until(lambda: not harness.processes_with(word), 2)
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
    leftovers.check(2)


# -- the host's files --------------------------------------------------------------------------------------------------------

def plant(project, target, name="a"):
    """A guest leaves a symlink in a directory that it may write."""
    done = belljar("--rw", f"{project}:/workspace", "--", "/bin/ln", "-s", target, f"/workspace/{name}")
    assert done.returncode == 0 and os.readlink(project / name) == str(target), done


@pytest.fixture
def project(shared):
    directory = shared / "project"
    directory.mkdir()
    return directory


@pytest.fixture
def data(shared):
    directory = shared / "data"
    directory.mkdir()
    (directory / "file").write_text("DATA")
    return directory


@pytest.fixture
def victim(shared):
    directory = shared / "victim"
    (directory / "sub").mkdir(parents=True)
    (directory / "sub/file").write_text("SECRET")
    (directory / "file").write_text("SECRET")
    return directory


@pytest.mark.parametrize("target", ["a", "a/new", "a/new/c", "a/sub/new"])
@pytest.mark.parametrize("source", ["data", "data/file"])
def test_planted_link_does_not_move_a_mount_point(target, source, shared, project, data, victim):
    """Mount points are made where the caller said, never where a guest of an earlier run has pointed."""
    plant(project, victim)
    before = contents(shared)
    done = belljar("--rw", f"{project}:/workspace", "--ro", f"{shared / source}:/workspace/{target}", "--", "/bin/cat",
                   f"/workspace/{target}", "/workspace/a/file")
    mistake(done, f"/workspace/{target}")
    assert contents(shared) == before, "nothing is made on the host"


@pytest.mark.parametrize("access", ["--ro", "--rw"])
@pytest.mark.parametrize("beneath", ["", "/sub", "/file"])
@pytest.mark.parametrize("relative", [False, True], ids=["absolute", "relative"])
def test_planted_link_is_no_source(access, beneath, relative, project, victim):
    plant(project, pathlib.Path("../victim") if relative else victim)
    done = belljar(access, f"{project}/a{beneath}:/data", "--", "/bin/sh", "-c", "ls /data; cat /data /data/file")
    mistake(done, f"{project}/a", "victim")
    assert "SECRET" not in done.stdout


def test_source_without_links(victim):
    """The control of the tests above."""
    done = belljar("--ro", f"{victim}/sub:/data", "--", "/bin/cat", "/data/file")
    assert done.stdout == "SECRET", done


def test_mount_beneath_a_mount(project, data):
    mounts = ["--rw", f"{project}:/workspace", "--ro", f"{data}:/workspace/x", "--ro", f"{data}/file:/workspace/y"]
    script = ["--", "/bin/sh", "-c", "cat x/file y; echo new > made; echo new > x/made"]
    mistake(belljar(*mounts, *script), "/workspace/x")
    assert contents(project) == [] and contents(data) == ["file"], "nothing is made on the host"
    (project / "x").mkdir()
    (project / "y").touch()
    done = belljar(*mounts, *script)
    assert done.stdout == "DATADATA" and "Read-only" in done.stderr, done
    assert contents(project) == ["made", "x", "y"] and contents(data) == ["file"]


def test_hide_beneath_a_writable_mount_is_refused(victim):
    """A guest could rename what holds the hidden path and find it under another name."""
    for hidden in ("/data/sub", "/data/sub/file", "/data/not-there"):
        mistake(belljar("--rw", f"{victim}:/data", "--hide", hidden, "--", "/bin/true"), hidden, "/data")


def test_hide_beneath_a_read_only_mount(victim):
    done = belljar("--ro", f"{victim}:/data", "--hide", "/data/sub", "--hide", "/data/file", "--", "/bin/sh", "-c",
                   "ls -A /data/sub; cat /data/file /data/sub/file; mv /data/sub /data/other; cat /data/other/file; echo end")
    assert done.stdout == "end\n", done


def test_hidden_directory_shows_nothing_of_another_mount(data, victim):
    """Whatever the guest mounts over the sandbox's own directories, what covers hidden paths is empty."""
    for target in ("/sys", "/etc", "/opt"):
        done = belljar("--ro", f"{data}:{target}", "--ro", f"{victim}:/data", "--hide", "/data/sub", "--", "/bin/sh", "-c",
                       f"ls -A /data/sub; cat /data/sub/file; cat {target}/file")
        assert done.stdout == "DATA" or done.returncode == NOT_RUN, done


@pytest.mark.parametrize("access", ["--ro", "--rw"])
@pytest.mark.parametrize("source", ["/proc", "/proc/self/root", "/proc/self/cwd", "/proc/{pid}", "/proc/{pid}/root", "/sys", "/dev"])
def test_filesystems_of_the_kernel_are_no_sources(access, source, victim):
    """Refused, or nothing of the host's processes, files and devices comes in by them, and no setting can be written."""
    word = harness.token()
    host = subprocess.Popen(["/bin/sh", "-c", "sleep 20; :", word], cwd=victim)
    script = f"""
cat /p/file /p{victim}/file /p/root{victim}/file /p/cwd/file
for f in /p/[0-9]*/cmdline /p/cmdline; do tr '\\0' '\\n' < $f; done
find /p -writable -type f
for f in null zero full tty kmsg random; do (exec 3< /p/$f) && echo SECRET $f; done"""
    done = belljar(access, source.format(pid=host.pid) + ":/p", "--", "/bin/sh", "-c", script, cwd=victim)
    host.kill()
    host.wait()
    assert word not in done.stdout and "SECRET" not in done.stdout and "/p" not in done.stdout, done
    if done.returncode == NOT_RUN:
        mistake(done, source.format(pid=host.pid))


# -- attributes of files that may only be read -------------------------------------------------------------------------------

def attributes_of(path):
    status = os.stat(path)
    return (status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, status.st_ctime_ns,
            {name: os.getxattr(path, name) for name in os.listxattr(path)})


@forms
@pytest.mark.parametrize("what", ["file", ""], ids=["file", "directory"])
def test_attributes_of_read_only_files(form, what, data, victim):
    for path in (data / "file", data, victim / "file", victim):
        path.chmod(0o755)
        with contextlib.suppress(OSError):  # Not every filesystem of a host has them; the other ways are tried anyway.
            os.setxattr(path, "user.given", b"1")
    target = data / what
    before = attributes_of(target)
    result = run_form(form, "--ro", data, "--", guest("attributes"), target)
    assert "tried" in result["stdout"], result
    done = [way for way, error in answers(result["stdout"]).items() if error == 0]
    assert not done, f"changed by {done}"
    assert attributes_of(target) == before
    control = harness.outside("attributes", victim / what)
    ways = answers(control.stdout)
    for way in ("chmod", "fchmod", "fchown", "futimens", "utimensat"):
        assert ways[way] == 0, f"outside, {way} must work"
    assert attributes_of(victim / what)[:4] != before[:4]


SET_IDS = stat.S_ISUID | stat.S_ISGID


@forms
@pytest.mark.parametrize("where", ["mount", "private"])
def test_no_set_id_files(form, where, project, data):
    """Made by a guest of root, a set-uid file in a writable mount would be root's: any user of the host would be root."""
    place = project if where == "mount" else "."
    result = run_form(form, "--rw", project, "--", guest("set_ids"), place)
    ways = answers(result["stdout"])
    assert "tried" in result["stdout"], result
    found = [str(path) for path in project.rglob("*") if path.lstat().st_mode & SET_IDS]
    assert not found, f"{found}, {ways}"
    answered = {way for way, error in ways.items() if error == 0}
    # mkdir takes no such bits, whatever it is asked; the name of a socket has its mode only where that could be set.
    assert {way for way in answered if not way.startswith("plain")} <= {"mkdir", "socket-bind"}
    for way in ("chmod-uid", "chmod-gid", "fchmod", "open", "openat", "mknod", "mkdir-chmod"):
        assert ways[way] == errno.EPERM, way
    ordinary = {way: error for way, error in ways.items() if way.startswith("plain")}
    if form == "landlock-only":  # Landlock does not cover modes: there no file of the host may get another one.
        ordinary = {way: error for way, error in ordinary.items() if way in ("plain-open", "plain-openat", "plain-mkdir")}
    assert ordinary and set(ordinary.values()) == {0}, ways
    if where == "mount" and form == "namespaces":
        assert stat.S_IMODE((project / "plain").stat().st_mode) == 0o1777
        assert stat.S_IMODE((project / "chmod-uid").stat().st_mode) == 0o755
    control = harness.outside("set_ids", data)
    made = {path.name for path in data.iterdir() if path.lstat().st_mode & SET_IDS}
    assert {"chmod-gid", "fchmod", "open", "openat", "mknod", "mkdir-chmod"} <= made, control


# -- limits that a watcher keeps -----------------------------------------------------------------------------------------------

if harness.IS_ROOT:
    HOLD = """
import ctypes, sys, time
if sys.argv[1] == 'hidden': ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
held = bytearray(b'x') * (200 << 20)
time.sleep(1)
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
                               "--memory", "64M", "--", PYTHON, "-c", HOLD, dumpable], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, cwd="/", timeout=20)
        result = json.loads(done.stdout)
        assert result["verdict"] in ("out_of_memory", "refused", "failed"), result
        assert "held" not in result["stdout"]
        assert result["message"]


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
time.sleep(0.3)
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
        result = run_form("landlock-only", "--disk", "8M", "--", PYTHON, "-c", WRITE, way)
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


# -- sandbox init --------------------------------------------------------------------------------------------------------------

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
    with subprocess.Popen(["/bin/sleep", "20"]) as process:
        ways = answers(harness.outside("poke", process.pid).stdout)
        assert process.wait(5) in (-signal.SIGTERM, -signal.SIGXCPU)
    assert ways["rt_sigqueueinfo-15--1"] == 0
    for way in ("prlimit-nofile", "setpriority"):
        assert ways[way] in (0, errno.ESRCH), "refused outside too, so the tests above show nothing"


# -- what a caller hands on ----------------------------------------------------------------------------------------------------

# Not by /proc, which is not there in every form. Python ignores two by itself.
SIGNALS = """
import signal
own = {signal.SIGPIPE, signal.SIGXFSZ}
print([n for n in range(1, 65) if n not in (32, 33) and n not in own and signal.getsignal(n) == signal.SIG_IGN])
print(sorted(int(n) for n in signal.pthread_sigmask(signal.SIG_BLOCK, [])))
"""


@everywhere
def test_ignored_and_blocked_signals_stay_outside(where):
    def prepare():
        for number in (signal.SIGUSR1, signal.SIGHUP, *range(34, 65)):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, signal.SIGRTMAX])

    script = [PYTHON, "-c", SIGNALS]
    control = subprocess.run(script, capture_output=True, text=True, preexec_fn=prepare).stdout
    assert control == f"{[1, 10, *range(34, 65)]}\n[12, 64]\n", "outside, they are handed on"
    done = subprocess.run([*start(where), "--", *script], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10,
                          preexec_fn=prepare)
    assert done.stdout == "[]\n[]\n", done


@everywhere
@pytest.mark.parametrize("json_form", [[], ["--json"]], ids=["streamed", "json"])
def test_caller_that_ignores_sigchld(where, json_form):
    """Its children are reaped by the kernel, and who waits for them is told that there are none."""
    began = time.monotonic()
    for code in (0, 3):
        done = subprocess.run([*start(where), *json_form, "--", "/bin/sh", "-c", f"echo hi; exit {code}"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=10, preexec_fn=ignoring(signal.SIGCHLD))
        assert done.returncode == code and "hi" in done.stdout, done
        if json_form:
            assert json.loads(done.stdout)["verdict"] == "exited"
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("ignored", [True, False], ids=["nohup", "control"])
def test_nohup(ignored):
    process = subprocess.Popen([BELLJAR, "run", "--", "/bin/sh", "-c", "echo ready; sleep 0.4; echo done; exit 4"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               preexec_fn=ignoring(signal.SIGHUP) if ignored else None)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGHUP)
    out, err = process.communicate(timeout=10)
    assert (out, process.returncode) == (("done\n", 4) if ignored else ("", 130)), err


@forms
@pytest.mark.parametrize("closed", [[0, 2], [1, 2], [0, 1, 2]], ids=lambda closed: "".join(map(str, closed)))
def test_closed_streams_let_nothing_in(form, closed, shared):
    """Descriptors of belljar must not take the numbers of closed streams: the guest would hold them, or be written to by it."""
    code = "import os\nlines = []\nfor fd in range(64):\n  try: lines.append(f'{fd} {os.readlink(f\"/proc/self/fd/{fd}\")}')\n" \
           "  except OSError: pass\nfor fd in range(3):\n  try: os.write(fd, b'X' * 4096)\n  except OSError: pass\n" \
           f"open('{shared}/seen', 'w').write('\\n'.join(lines))\nraise SystemExit(5)"
    script = "".join(f" {number}{'<' if number == 0 else '>'}&-" for number in closed)
    done = subprocess.run(["/bin/sh", "-c", f'exec "$@"{script}', "sh", *command(form, "--rw", shared, "--", PYTHON, "-c", code)],
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=10)
    assert done.returncode == 5, done
    seen = dict(line.split(" ", 1) for line in (shared / "seen").read_text().splitlines())
    assert set(seen) <= {"0", "1", "2"}, seen
    assert all(re.match(r"pipe:|/dev/null", target) for target in seen.values()), seen
    assert set(done.stdout) <= set(b"X")


# -- streams and terminals -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_result_that_nobody_reads_can_be_cancelled(number):
    """The command is over, belljar prints into a pipe that is full: a signal still ends it."""
    process = subprocess.Popen([BELLJAR, "run", "--json", "--output", "1M", "--", "/bin/sh", "-c", "yes | head -c 1000000"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def waiting():
        buffer = bytearray(4)
        fcntl.ioctl(process.stdout, termios.FIONREAD, buffer)
        return int.from_bytes(buffer, "little")

    assert harness.wait_until(lambda: waiting() >= 60000, 10), "belljar must be printing"
    time.sleep(0.1)
    process.send_signal(number)
    ended = harness.wait_until(lambda: process.poll() is not None, 2)
    process.kill()
    process.wait()
    process.stdout.close()
    assert ended, "belljar waits for a reader and can't be ended"


@everywhere
def test_terminal_in_every_form(where):
    argv = start(where)
    script = "test -t 0 && test -t 1 && test -t 2 && echo all three; tty; read x; echo got $x; exit 6"
    pid, master = pty.fork()
    if pid == 0:
        os.execv(argv[0], [*argv, "--tty", "--wall", "5s", "--", "/bin/sh", "-c", script])
    shown, deadline = b"", time.monotonic() + 8
    os.write(master, b"word\r")
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.05)[0]:
            try:
                shown += os.read(master, 65536)
            except OSError:
                break
    if time.monotonic() >= deadline:
        os.kill(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(master)
    text = shown.decode(errors="replace")
    assert status == 6 and "all three" in text and "/dev/pts/" in text and "got word" in text, (status, text)


# -- odd policies --------------------------------------------------------------------------------------------------------------

@everywhere
@pytest.mark.parametrize("count", [8, 16])
def test_few_open_files(where, count):
    """The guest's limit is the guest's alone: the set-up needs more."""
    done = subprocess.run([*start(where), "--open-files", str(count), "--", "/bin/sh", "-c", "ulimit -n; ulimit -Hn; /bin/true"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10)
    assert done.returncode == 0 and done.stdout.split() == [str(count)] * 2, done


@pytest.mark.parametrize("workdir", ["/", "/proc", "/proc/self", "/dev", "/dev/pts"])
def test_workdir_of_the_sandbox_itself(workdir):
    """A private directory there would cover what the sandbox has made."""
    mistake(belljar("--workdir", workdir, "--", "/bin/true"), "working directory", workdir)
