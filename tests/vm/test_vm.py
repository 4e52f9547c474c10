"""The harness itself: what a caller relies on when a suite is run in the machine. About ten boots of some seconds each.

BELLJAR_VM_KERNEL chooses the kernel (default: Debian's current one).
"""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import initramfs
import kernels
import machine

KERNEL = os.environ.get("BELLJAR_VM_KERNEL", "default")


def vm(*command: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
    argv = [str(HERE / "run"), "--kernel", KERNEL, "--timeout", "240", *options, "--", *command]
    return subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)


def test_streams_and_exit_status_are_the_commands_own():
    done = vm("sh", "-c", "seq 1 200000; echo problem >&2; exit 7")
    assert (done.returncode, done.stderr) == (7, "problem\n")
    assert done.stdout == "".join(f"{number}\n" for number in range(1, 200001))


def test_guest_runs_another_kernel_and_cannot_write_to_the_host(tmp_path):
    os.chmod(tmp_path, 0o777)
    done = vm("sh", "-c", f"echo guest > {tmp_path}/file && cat {tmp_path}/file && uname -r")
    written, release = done.stdout.split()
    assert written == "guest"
    assert release != os.uname().release
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize("command, status", [("kill -9 $$", 137), ("/no/such/program", 127)])
def test_failures_of_the_command_are_passed_on(command, status):
    assert vm("sh", "-c", command).returncode == status


DELEGATION = """
own=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)
sleep 60 & sleeper=$!
mkdir $own/../sibling && echo $sleeper > $own/../sibling/cgroup.procs && echo 32 > $own/../sibling/pids.max &&
  echo 64M > $own/../sibling/memory.max && echo "50000 100000" > $own/../sibling/cpu.max && echo limited
kill $sleeper
"""


def test_user_with_delegation_can_limit_a_process():
    done = vm("sh", "-c", DELEGATION, options=("--user", "tester"))
    assert done.stdout == "limited\n", done.stderr


def test_user_without_delegation_cannot():
    done = vm("sh", "-c", DELEGATION, options=("--user", "tester", "--delegate", "off"))
    assert done.stdout == ""
    assert "Permission denied" in done.stderr


@pytest.mark.parametrize("layout, expected", [("v2", "cgroup2"), ("v1", "cgroup"),
                                              ("hybrid", "cgroup cgroup2"), ("none", "")])
def test_cgroup_layout(layout, expected):
    done = vm("sh", "-c", "awk '$3 ~ /^cgroup/ { print $3 }' /proc/mounts | sort -u", options=("--cgroup", layout))
    assert done.stdout.split() == expected.split()


@pytest.mark.parametrize("mode, as_root, as_nobody", [("on", 0, 0), ("root-only", 0, 1), ("off", 1, 1)])
def test_user_namespaces(mode, as_root, as_nobody):
    drop = "setpriv --reuid=65534 --regid=65534 --clear-groups"
    done = vm("sh", "-c", f"unshare -Ur true; echo $?; {drop} unshare -Ur true; echo $?", options=("--userns", mode))
    assert done.stdout.split() == [str(as_root), str(as_nobody)]


def test_a_process_left_behind_is_named_and_does_not_hold_the_run():
    started = time.monotonic()
    done = vm("sh", "-c", "sleep 1000 & echo done")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "left running" in done.stderr and "sleep 1000" in done.stderr
    assert time.monotonic() - started < 200


@pytest.mark.parametrize("command", ["sleep 1000", "yes"])
def test_timeout_ends_the_machine(command):
    done = subprocess.run([str(HERE / "run"), "--kernel", KERNEL, "--timeout", "25", "--", *command.split()],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 124, done.stderr


def test_guest_panic_is_a_failure_with_its_console():
    done = vm("sh", "-c", "echo c > /proc/sysrq-trigger; sleep 100")
    assert done.returncode == 125
    assert "sysrq" in done.stderr


def test_killing_the_runner_ends_the_machine():
    runner = subprocess.Popen([sys.executable, str(HERE / "run"), "--kernel", KERNEL, "--", "sleep", "1000"])
    children = pathlib.Path(f"/proc/{runner.pid}/task/{runner.pid}/children")
    deadline = time.monotonic() + 60
    while not (qemu := [pid for pid in children.read_text().split() if "qemu" in _command(pid)]):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    while "qemu" in _command(qemu[0]):
        assert time.monotonic() < deadline + 10
        time.sleep(0.1)


def _command(pid: str) -> str:
    """Empty for a process that is gone or waits to be reaped."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text()
    except FileNotFoundError:
        return ""


@pytest.mark.parametrize("cut", range(1, 20))
def test_stream_ends_at_the_mark_wherever_reads_divide_it(cut):
    reader, writer = os.pipe()
    stream = machine.Stream(writer, b"\x1eMARK")
    data = b"text\x1eMA text\x1eMARK"
    stream.feed(data[:cut])
    stream.feed(data[cut:])
    os.close(writer)
    assert stream.ended
    assert os.read(reader, 100) == b"text\x1eMA text"
    os.close(reader)


def test_kernel_versions_sort_by_number_and_prefixes_end_at_a_dot():
    releases = ["6.12.9+deb12-amd64", "6.1.0-54-amd64", "6.12.100+deb12-amd64", "5.10.0-32-amd64"]
    assert sorted(releases, key=kernels.version_key) == [releases[3], releases[1], releases[0], releases[2]]
    assert kernels._matches("6.1.0-54-amd64", "6.1")
    assert not kernels._matches("6.12.9+deb12-amd64", "6.1")


def test_initramfs_is_an_archive_others_can_read(tmp_path):
    kernel = kernels.prepare(KERNEL, machine.find_tool("busybox"))
    archive = initramfs.build(kernel, machine.find_tool("busybox"), {"init": "#!/bin/busybox sh\n"})
    reader = [machine.find_tool("busybox"), "cpio", "-t"]
    listing = subprocess.run(reader, input=archive, capture_output=True, check=True)
    names = listing.stdout.decode().split()
    assert "init" in names and "bin/busybox" in names
    assert any(name.endswith("-9p.ko") for name in names)
