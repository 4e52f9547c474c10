"""What a careless caller hands on: ignored signals, closed streams, terminals, odd policies. Each once let something in, or hung.
"""

import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import termios
import time

import pytest

import harness
from forms import FORMS, command, everywhere, forms, ignoring, mistake, start
from harness import BELLJAR, PATIENCE, PYTHON, belljar


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
    done = subprocess.run([*start(where), "--", *script], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
                          preexec_fn=prepare)
    assert done.stdout == "[]\n[]\n", done


@everywhere
@pytest.mark.parametrize("json_form", [[], ["--json"]], ids=["streamed", "json"])
def test_caller_that_ignores_sigchld(where, json_form):
    """Its children are reaped by the kernel, and who waits for them is told that there are none."""
    for code in (0, 3):
        done = subprocess.run([*start(where), *json_form, "--", "/bin/sh", "-c", f"echo hi; exit {code}"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=PATIENCE, preexec_fn=ignoring(signal.SIGCHLD))
        assert done.returncode == code and "hi" in done.stdout, done
        if json_form:
            assert json.loads(done.stdout)["verdict"] == "exited"


@pytest.mark.parametrize("ignored", [True, False], ids=["nohup", "control"])
def test_nohup(ignored):
    def pending():
        lines = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        return any(int(mask, 16) & 1 << signal.SIGHUP - 1 for mask in re.findall(r"^\w*Pnd:\s*(\w+)", lines, re.M))

    process = subprocess.Popen([BELLJAR, "run", "--", "/bin/sh", "-c", "echo ready; read word; echo done; exit 4"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               preexec_fn=ignoring(signal.SIGHUP) if ignored else None)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGHUP)
    if ignored:
        assert harness.wait_until(lambda: not pending()), "belljar never took the signal"
    else:
        process.wait(timeout=PATIENCE)
    out, err = process.communicate("word\n", timeout=PATIENCE)
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
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 5, done
    seen = dict(line.split(" ", 1) for line in (shared / "seen").read_text().splitlines())
    assert set(seen) <= {"0", "1", "2"}, seen
    assert all(re.match(r"pipe:|/dev/null", target) for target in seen.values()), seen
    assert set(done.stdout) <= set(b"X")



@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_result_that_nobody_reads_can_be_cancelled(number):
    """The command is over, belljar prints into a pipe that is full: a signal still ends it."""
    process = subprocess.Popen([BELLJAR, "run", "--json", "--output", "1M", "--", "/bin/sh", "-c", "yes | head -c 1000000"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def waiting():
        buffer = bytearray(4)
        fcntl.ioctl(process.stdout, termios.FIONREAD, buffer)
        return int.from_bytes(buffer, "little")

    full = fcntl.fcntl(process.stdout, fcntl.F_GETPIPE_SZ)
    assert harness.wait_until(lambda: waiting() == full), "belljar must be printing"
    process.send_signal(number)
    ended = harness.wait_until(lambda: process.poll() is not None)
    process.kill()
    process.wait()
    process.stdout.close()
    assert ended, "belljar waits for a reader and can't be ended"


def in_terminal(argv, typed=b""):
    """The status and what was shown."""
    pid, master = pty.fork()
    if pid == 0:
        os.execv(argv[0], argv)
    shown, deadline = b"", time.monotonic() + PATIENCE
    os.write(master, typed)
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
    return status, shown.decode(errors="replace")


@everywhere
def test_terminal_in_every_form(where):
    script = "test -t 0 && test -t 1 && test -t 2 && echo all three; tty; read x; echo got $x; exit 6"
    status, text = in_terminal([*start(where), "--tty", "--wall", "100s", "--", "/bin/sh", "-c", script], b"word\r")
    assert status == 6 and "all three" in text and "/dev/pts/" in text and "got word" in text, (status, text)


# By Landlock alone no terminal has a name that may be opened: they are the host's.
@pytest.mark.parametrize("where, name", [(w, n) for w in [*FORMS, "process"] for n in ["/dev/tty", "$own"] if (w, n) != ("landlock-only", "$own")])
def test_a_terminal_can_be_closed_and_opened_again(where, name):
    """Whoever closes it is not hung up, which is what a terminal without anybody at its other end does."""
    script = f"own=$(tty); exec <&- >&- 2>&-; for i in 1 2 3 4 5 6 7 8 9; do /bin/true; done; exec >{name}; echo again; exit 6"
    status, text = in_terminal([*start(where), "--tty", "--wall", "100s", "--", "/bin/sh", "-c", script])
    assert status == 6 and "again" in text, (status, text)


@everywhere
@pytest.mark.parametrize("count", [8, 16])
def test_few_open_files(where, count):
    """The guest's limit is the guest's alone: the set-up needs more."""
    done = subprocess.run([*start(where), "--open-files", str(count), "--", "/bin/sh", "-c", "ulimit -n; ulimit -Hn; /bin/true"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and done.stdout.split() == [str(count)] * 2, done


@pytest.mark.parametrize("workdir", ["/", "/proc", "/proc/self", "/dev", "/dev/pts"])
def test_workdir_of_the_sandbox_itself(workdir):
    """A private directory there would cover what the sandbox has made."""
    mistake(belljar("--workdir", workdir, "--", "/bin/true"), "working directory", workdir)
