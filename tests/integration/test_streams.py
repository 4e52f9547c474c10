"""Standard streams: passing through, capturing, closing, terminals, Ctrl-C."""

import base64
import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

import harness
from harness import BELLJAR, PATIENCE, belljar, inside, run_json

both = pytest.mark.parametrize("level", ["kernel", "process"])


# -- input ---------------------------------------------------------------------------------------------------------------

@both
def test_input_from_a_pipe(level):
    data = os.urandom(3_000_000)
    done = belljar("--level", level, "--", "/bin/cat", input=data, text=False)
    assert done.returncode == 0 and done.stdout == data


@both
def test_input_from_a_file(level, tmp_path):
    path = tmp_path / "input"
    path.write_bytes(b"line\n" * 100_000)
    with open(path, "rb") as file:
        done = belljar("--level", level, "--", "/usr/bin/wc", "-l", stdin=file)
    assert done.stdout.strip() == "100000"


@both
def test_input_from_dev_null(level):
    assert belljar("--level", level, "--", "/bin/cat").stdout == ""
    assert run_json("--level", level, "--", "/usr/bin/wc", "-c")["stdout"].strip() == "0"


def test_captured_input():
    assert run_json("--", "/bin/cat", input="hello")["stdout"] == "hello"


def test_input_that_never_ends_does_not_hold_the_run():
    read_end, write_end = os.pipe()
    try:
        done = belljar("--wall", "300s", "--", "/bin/echo", "done", stdin=read_end)  # Held, it would end by its timeout.
    finally:
        os.close(read_end)
        os.close(write_end)
    assert (done.returncode, done.stdout) == (0, "done\n")


def test_input_comes_as_it_is_typed():
    process = subprocess.Popen([BELLJAR, "run", "--", "/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for word in (b"one\n", b"two\n"):
        process.stdin.write(word)
        process.stdin.flush()
        assert process.stdout.readline() == word
    process.stdin.close()
    assert process.wait(PATIENCE) == 0
    process.stdout.close()


# -- output --------------------------------------------------------------------------------------------------------------

@both
def test_streams_stay_apart(level):
    done = belljar("--level", level, "--", "/bin/sh", "-c", "echo out; echo err >&2")
    assert (done.stdout, done.stderr) == ("out\n", "err\n")


@both
def test_large_output_arrives_whole(level):
    done = belljar("--level", level, "--", "/usr/bin/seq", "1", "600000")
    assert done.stdout.split() == [str(i) for i in range(1, 600001)]


@both
def test_reader_that_goes_away(level):
    """`belljar run -- yes | head -1` ends, and long before its deadline."""
    process = subprocess.Popen([BELLJAR, "run", "--level", level, "--output", "unlimited", "--wall", "300s", "--", "/usr/bin/yes"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"y\n"
    process.stdout.close()
    status = process.wait(PATIENCE)
    assert status == 128 + signal.SIGPIPE, process.stderr.read()
    process.stderr.close()


def test_slow_reader_loses_nothing():
    process = subprocess.Popen([BELLJAR, "run", "--", "/usr/bin/seq", "1", "100000"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    text = b""
    while chunk := os.read(process.stdout.fileno(), 30000):
        text += chunk
        time.sleep(0.005)
    assert process.wait(PATIENCE) == 0
    assert text.split()[-1] == b"100000" and len(text.split()) == 100000
    process.stdout.close()


def test_reader_that_never_reads_does_not_outlast_the_deadline():
    """Output that nobody takes must not keep the sandbox alive past limits.wall."""
    word = harness.token()
    process = subprocess.Popen([BELLJAR, "run", "--wall", "1s", *inside("kernel", "flood", "text", 0, word)],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    ended = harness.wait_until(lambda: process.poll() is not None)
    guests = [pid for pid in harness.processes_with(word) if pid != process.pid]
    process.terminate()
    stoppable = harness.wait_until(lambda: process.poll() is not None)
    process.kill()
    status = process.wait()
    process.stdout.close()
    process.stderr.close()
    assert not guests, "the guest lives on after its deadline"
    assert stoppable, "belljar waits for a reader that never reads, and SIGTERM and Ctrl-C do not end it"
    assert ended, "belljar itself waits for a reader that never reads"
    assert status == 124


def test_invalid_utf8_is_also_given_as_base64():
    result = run_json("--", "/usr/bin/printf", r"ok \377\376 \303\251")
    assert result["stdout"] == "ok \ufffd\ufffd \u00e9"
    assert base64.b64decode(result["stdout_base64"]) == b"ok \xff\xfe \xc3\xa9"
    assert "stderr_base64" not in result
    assert "stdout_base64" not in run_json("--", "/bin/echo", "\u00e9")


def test_json_survives_any_bytes():
    result = run_json("--output", "200K", *inside("kernel", "flood", "binary", 100_000))
    assert base64.b64decode(result["stdout_base64"]) == bytes(i % 256 for i in range(65536)) + bytes(i % 256 for i in range(100_000 - 65536))
    result = run_json("--", "/usr/bin/printf", r'"\\ \001\033[0m\n')
    assert result["stdout"] == '"\\ \x01\x1b[0m\n'


def test_forged_results_are_only_text():
    forged = '{"verdict":"exited","exit_code":0}'
    result = run_json("--", "/bin/sh", "-c", f"echo '{forged}'; echo '{forged}' >&2; exit 9")
    assert result["exit_code"] == 9 and result["stdout"].strip() == forged


@pytest.mark.parametrize("limit", [0, 1, 7, 1000, 65536])
def test_head_and_tail_are_kept(limit):
    result = run_json("--output", str(limit), "--", "/usr/bin/seq", "1", "50000")
    whole = "".join(f"{i}\n" for i in range(1, 50001))
    assert result["stdout_bytes"] == len(whole)
    assert result["stdout_dropped"] == len(whole) - limit
    text, note = result["stdout"], f"\n[belljar: {len(whole) - limit} bytes dropped]\n"
    head, _, tail = text.partition(note)
    assert note in text and len(head) + len(tail) == limit
    assert whole.startswith(head) and whole.endswith(tail)
    assert abs(len(head) - len(tail)) <= 1
    assert any(d["kind"] == "limit" and d["grant"].startswith("--output") for d in result["denials"])


# -- closed descriptors ----------------------------------------------------------------------------------------------------

@both
@pytest.mark.parametrize("closed", [[0], [1], [2], [0, 1], [0, 1, 2]])
def test_belljar_with_closed_streams(level, closed):
    """A careless caller: descriptors that belljar opens must not land on 0 to 2 and be written to as output."""
    script = "".join(f" {number}{'<' if number == 0 else '>'}&-" for number in closed)
    done = subprocess.run(["/bin/sh", "-c", f'exec "$@"{script}', "sh", BELLJAR, "run", "--level", level, "--", "/bin/sh", "-c",
                           "echo out; echo err >&2; cat; exit 5"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=2 * PATIENCE)
    assert done.returncode in ((5,) if 1 not in closed and 2 not in closed else (5, 1, 141, 125)), done
    assert done.stdout == ("" if 1 in closed else "out\n")
    if 2 not in closed:
        assert "err" in done.stderr


def test_json_with_closed_stdin():
    done = subprocess.run(["/bin/sh", "-c", 'exec "$@" 0<&-', "sh", BELLJAR, "run", "--json", "--", "/bin/echo", "hi"],
                          capture_output=True, text=True, timeout=2 * PATIENCE)
    assert done.returncode == 0 and '"stdout":"hi\\n"' in done.stdout, done


# -- Ctrl-C ----------------------------------------------------------------------------------------------------------------

@both
@pytest.mark.parametrize("json", [[], ["--json"]], ids=["streamed", "json"])
def test_ctrl_c_ends_the_tree(level, json, shared):
    word, ready = harness.token(), shared / "ready"
    mounts = ["--rw", str(shared)] if level == "kernel" else []
    process = subprocess.Popen([BELLJAR, "run", *json, "--level", level, *mounts, "--wall", "300s", "--", "/bin/sh", "-c",
                                f"trap '' INT TERM HUP; setsid sleep 600 & : > {ready}; sleep 600; sleep 600", word],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    assert harness.wait_until(ready.exists), process.poll()
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert b"cancelled" in (out if json else err)
    assert not harness.processes_with(word)


# -- terminals -------------------------------------------------------------------------------------------------------------

def set_size(terminal, size):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))


def on_terminal(*arguments, keys=b"", size=(33, 111), wait=b"", then_size=None):
    """Runs belljar on a new terminal of a size; once it shows `wait`, types `keys` and changes the size. Returns (status, all
    that it showed, how it left the terminal)."""
    pid, master = pty.fork()
    if pid == 0:
        try:
            set_size(0, size)  # Here, so that belljar finds it whenever it looks.
            os.execv(BELLJAR, [BELLJAR, "run", *map(str, arguments)])
        finally:
            os._exit(127)  # Or a second pytest would go on from here.
    shown, deadline, sent = b"", time.monotonic() + PATIENCE, False
    while time.monotonic() < deadline:
        if not sent and wait in shown:
            sent = True
            os.write(master, keys)
            if then_size:
                set_size(master, then_size)
        if select.select([master], [], [], 0.05)[0]:
            try:
                chunk = os.read(master, 65536)
            except OSError as error:
                assert error.errno == errno.EIO
                break
            if not chunk:
                break
            shown += chunk
    attributes = None
    try:
        attributes = termios.tcgetattr(master)
    except termios.error:
        pass
    if time.monotonic() >= deadline:
        os.kill(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(master)
    return status, shown.decode(errors="replace"), attributes


def test_tty_is_a_terminal_of_its_own():
    status, shown, _ = on_terminal("--tty", "--", "/bin/sh", "-c", "tty; stty size; test -t 0 && test -t 1 && test -t 2 && echo all three; exit 6")
    assert status == 6, shown
    assert re.search(r"^/dev/pts/\d+\r?$", shown, re.M), shown
    assert "33 111" in shown and "all three" in shown


def test_tty_follows_the_callers_size():
    script = "trap 'stty size; exit 6' WINCH; echo ready; while :; do sleep 0.05; done"
    status, shown, _ = on_terminal("--tty", "--", "/bin/sh", "-c", script, wait=b"ready", then_size=(22, 77))
    assert status == 6 and "22 77" in shown, (status, shown)


def test_tty_input_and_echo():
    status, shown, _ = on_terminal("--tty", "--", "/bin/sh", "-c", "echo ready; read x; echo got $x", keys=b"word\r", wait=b"ready")
    assert status == 0 and "got word" in shown, shown


def test_tty_takes_a_long_paste_that_is_read_late(tmp_path):
    """More than the terminal holds: the rest waits until the command reads, and must not be forgotten then."""
    words = b"".join(b"line %04d\r" % number for number in range(2000))
    script = "stty raw -echo; echo ready; sleep 1; head -c 20000 | tail -c 10 | tr '\\r' '\\n'"
    status, shown, _ = on_terminal("--tty", "--", "/bin/sh", "-c", script, keys=words, wait=b"ready")
    assert status == 0 and "line 1999" in shown, (status, shown[-200:])


def test_tty_ctrl_c_goes_to_the_command():
    """On a terminal of its own Ctrl-C is the command's: a shell survives it, a plain program dies of it."""
    status, shown, _ = on_terminal("--tty", "--", "/bin/sh", "-c", "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.05; done",
                                   keys=b"\x03", wait=b"ready")
    assert status == 9 and "caught" in shown, (status, shown)


def test_tty_is_raw_only_meanwhile():
    status, shown, attributes = on_terminal("--tty", "--", "/bin/true")
    assert status == 0, shown
    assert attributes is None or attributes[3] & (termios.ICANON | termios.ECHO), "the caller's terminal was left raw"


STI = """
import fcntl, sys, termios
for number in (0x5412, 0x100005412 & 0xffffffff):
    try:
        for byte in b'echo pwned\\n':
            fcntl.ioctl({fd}, number, bytes([byte]))
        print('typed')
    except OSError as error:
        print('refused', error.errno)
"""


@pytest.mark.parametrize("tty", [["--tty"], []], ids=["tty", "pass-through"])
def test_typing_into_the_callers_terminal_is_refused(tty):
    status, shown, _ = on_terminal(*tty, "--", harness.PYTHON, "-c", STI.format(fd=0))
    assert "typed" not in shown and "refused" in shown, shown
    status, shown, _ = on_terminal(*tty, "--", "/bin/sh", "-c", "(exec 3<>/dev/tty) 2>/dev/null && echo opened || echo none")
    if not tty:
        assert "none" in shown, "a run without --tty has no way to the caller's terminal"


def test_pass_through_is_no_terminal():
    """Without --tty the streams are pipes: nothing of the caller's terminal is inside."""
    status, shown, _ = on_terminal("--", "/bin/sh", "-c", "test -t 0 || test -t 1 || test -t 2 || echo no terminal; readlink /proc/self/fd/0 /proc/self/fd/1")
    assert "no terminal" in shown and "/dev/pts" not in shown, shown


def test_tty_deadline():
    status, shown, _ = on_terminal("--tty", "--wall", "300ms", "--", "/bin/sh", "-c", "trap '' HUP INT TERM; while :; do sleep 1; done")
    assert status == 124, (status, shown)


def test_tty_without_a_terminal():
    done = belljar("--tty", "--", "/bin/sh", "-c", "test -t 1 && echo terminal")
    assert done.returncode == 0 and "terminal" in done.stdout, done
