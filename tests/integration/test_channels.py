"""Descriptors of the caller that a command is given, and that it gets no others."""

import fcntl
import os
import socket
import tempfile

import pytest

from harness import belljar, run_json

both = pytest.mark.parametrize("level", ["kernel", "process"])
LIST = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd')))"


@both
def test_a_file_a_pipe_and_a_socket(level, tmp_path):
    (tmp_path / "data").write_text("from a file\n")
    file = os.open(tmp_path / "data", os.O_RDONLY)
    read, write = os.pipe()
    ours, theirs = socket.socketpair()
    script = ("import os, socket; s = socket.socket(fileno=5); got = s.recv(100); "
              "os.write(4, os.read(3, 100) + got); s.sendall(b'answer')")
    ours.sendall(b"from a socket\n")
    done = run_json("--level", level, "--channel", f"data={file}:3", "--channel", f"{write}:4", "--channel",
                    f"tools={theirs.fileno()}:5", "--", "/usr/bin/python3", "-c", script, pass_fds=[file, write, theirs.fileno()])
    assert done.status == 0, (done, done.notes)
    os.close(write)
    theirs.close()
    assert os.read(read, 100) == b"from a file\nfrom a socket\n"
    assert os.read(read, 100) == b"", "nobody inside holds it any more"
    assert ours.recv(100) == b"answer" and ours.recv(100) == b""
    assert done["receipt"]["channels"] == [{"number": 3, "name": "data", "kind": "file"}, {"number": 4, "name": "", "kind": "pipe"},
                                           {"number": 5, "name": "tools", "kind": "socket"}]
    for fd in (file, read):
        os.close(fd)


@both
def test_a_memory_file_that_is_for_reading_alone(level):
    """It has no name, so nothing but a seal keeps whoever has it from opening it again for writing."""
    both_ways = os.memfd_create("data", os.MFD_ALLOW_SEALING)
    os.write(both_ways, b"mine\n")
    file = os.open(f"/proc/self/fd/{both_ways}", os.O_RDONLY)
    with open(f"/proc/self/fd/{file}", "r+b") as again:
        again.write(b"MINE\n")
    assert os.pread(file, 100, 0) == b"MINE\n", "the control"
    command = ["--level", level, "--channel", f"{file}:3", "--", "/bin/sh", "-c", "cat <&3; echo theirs > /proc/self/fd/3"]
    refused = belljar(*command, pass_fds=[file])
    assert refused.returncode == 125 and "F_SEAL_WRITE" in refused.stderr, refused
    fcntl.fcntl(both_ways, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    assert belljar(*command, pass_fds=[file]).stdout == "MINE\n" and os.pread(file, 100, 0) == b"MINE\n"
    os.close(file)
    os.close(both_ways)


@both
def test_numbers_that_belljar_itself_would_use(level):
    """All sixteen that there may be, wherever Belljar's own descriptors lie, each at the number that was asked for."""
    pipes = [os.pipe() for _ in range(16)]
    flags, numbers = [], [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 62, 63]
    for (_, write), number in zip(pipes, reversed(numbers)):
        flags += ["--channel", f"{write}:{number}"]
    script = f"import os\nfor n in {numbers}: os.write(n, b'%d' % n)"
    done = belljar("--level", level, *flags, "--", "/usr/bin/python3", "-c", script, pass_fds=[w for _, w in pipes])
    assert done.returncode == 0, done
    for (read, write), number in zip(pipes, reversed(numbers)):
        os.close(write)
        assert os.read(read, 100) == b"%d" % number
        os.close(read)


@both
def test_nothing_else_is_open(level):
    read, write = os.pipe()
    other, another = os.pipe()
    done = belljar("--level", level, "--channel", f"{write}:9", "--", "/usr/bin/python3", "-c", LIST, pass_fds=[write, other, another])
    assert done.stdout.split() == "[0, 1, 2, 3, 9]".split(), (done, "3 is the directory that is listed")
    for fd in (read, write, other, another):
        os.close(fd)


def test_a_program_that_is_not_there_is_told():
    read, write = os.pipe()
    done = belljar("--channel", f"{write}:4", "--", "/nonexistent", pass_fds=[write])
    assert done.returncode == 127 and "not found" in done.stderr
    for fd in (read, write):
        os.close(fd)


def refused(*words, pass_fds=()):
    done = run_json(*words, "--", "/bin/true", pass_fds=pass_fds)
    assert done.verdict == "refused" and done.status == 125
    return done["message"]


@pytest.mark.parametrize("path, flags, why", [
    ("/", os.O_RDONLY, "directory"), ("/tmp", os.O_PATH, "O_PATH"), ("/dev/null", os.O_RDWR, "device"),
    ("/proc/self/status", os.O_RDONLY, "object of the kernel"), ("/proc/self/ns/mnt", os.O_RDONLY, "object of the kernel")])
def test_what_leads_further_is_refused(path, flags, why):
    fd = os.open(path, flags)
    assert why in refused("--channel", f"{fd}:3", pass_fds=[fd])
    os.close(fd)


def test_processes_are_refused():
    fd = os.pidfd_open(os.getpid())
    assert "object of the kernel" in refused("--channel", f"{fd}:3", pass_fds=[fd])
    os.close(fd)


def test_mistakes_are_told():
    assert "not open" in refused("--channel", "57")
    assert "[NAME=]FD[:NUMBER]" in refused("--channel", "stdin")
    with tempfile.TemporaryFile() as file:
        fd = file.fileno()
        for number in (0, 2, 64):
            assert "from 3 to 63" in refused("--channel", f"{fd}:{number}", pass_fds=[fd])
        assert "another channel" in refused("--channel", f"{fd}:5", "--channel", f"{fd}:5", pass_fds=[fd])
        assert "more than 16" in refused(*[w for n in range(3, 20) for w in ("--channel", f"{fd}:{n}")], pass_fds=[fd])
