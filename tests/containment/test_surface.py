"""How much of the kernel and of the host answers a guest: THREATS A to C, entry point by entry point.

The probe (guests/surface.c) tries each in a process of its own. Outside, as the control, most of them answer.
"""

import glob
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess

import pytest

import harness

MOST_ANSWERS = 15
# What may answer, and why it does. Anything else that answers is a new hole, even while the number is small.
KNOWN = {
    "socket_udp": "name resolution and tests over the sandbox's own loopback; no route leads out of it",
    "read:/proc/loadavg": "getloadavg() of make -l and ninja",
    "read:/proc/version": "build scripts read it; uname tells the same",
    "read:/proc/filesystems": "tools of coreutils look here for SELinux",
}
# Things that must be refused whatever the count: each has been a way out of a sandbox.
NEVER = ["bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "keyctl_session_keyring", "ptrace_seize", "mount",
         "unshare_user", "clone_user", "clone3", "setns", "kexec_load", "init_module", "int80", "fanotify_init",
         "open_by_handle_at", "ioctl_tiocsti", "ioctl_tiocsti_high_bits", "socket_vsock", "socket_packet",
         "netlink_netfilter", "host_signal", "host_abstract_socket", "host_loopback", "host_file", "host_shm",
         "host_path_socket", "host_proc:environ", "read:/proc/1/environ", "read:/proc/kcore", "read:/etc/shadow",
         "read:/sys/fs/cgroup", "open_write:/proc/sys/kernel/core_pattern", "open_write:/proc/sysrq-trigger",
         "device:/dev/kmsg", "device:/dev/fuse", "mknod_character", "setresuid_0"]


@pytest.fixture
def host(tmp_path):
    """Things of the host that a guest has no business with; yields the probe's arguments."""
    tmp_path.chmod(0o755)
    secret = tmp_path / "secret"
    secret.write_text("canary")
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    path_socket, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    path_socket.bind(str(tmp_path / "s"))
    path_socket.listen(64)
    name = "belljar-test-" + os.urandom(8).hex()
    abstract.bind("\0" + name)
    abstract.listen(64)
    key = "0x" + (b"\x42" + os.urandom(3)).hex()
    made = subprocess.run(["ipcmk", "-M", "4096"], capture_output=True, text=True, check=True).stdout
    segment = made.split()[-1]
    for line in open("/proc/sysvipc/shm", encoding="utf-8").readlines()[1:]:
        if line.split()[1] == segment:
            key = line.split()[0]
    yield [os.getpid(), listener.getsockname()[1], name, tmp_path / "s", secret, key]
    subprocess.run(["ipcrm", "-m", segment], check=True)
    for open_socket in (listener, path_socket, abstract):
        open_socket.close()


def answers(text):
    lines = [line.split() for line in text.splitlines()]
    assert lines and lines[-1][0] == "total", f"the probe broke off: {text[-500:]}"
    table = {name: (state, int(error)) for name, state, error in (line for line in lines if len(line) == 3)}
    assert len(table) == int(lines[-1][1])
    return table


def answered(table):
    return sorted(name for name, (state, _) in table.items() if state == "answered")


def test_surface(host, leftovers):
    control = answers(harness.outside("surface", *host).stdout)
    result = harness.run_json("--output", "1M", *harness.inside("kernel", "surface", *host))
    assert result.verdict == "exited" and result["exit_code"] == 0, result
    table = answers(result["stdout"])
    inside, without = answered(table), answered(control)
    print(f"{len(table)} tried; answered outside {len(without)}, inside {len(inside)}: {inside}")
    assert len(table) >= 110
    assert len(without) >= (200 if harness.IS_ROOT else 120), "the control shows too little: is the probe itself confined?"
    assert len(inside) <= MOST_ANSWERS
    assert set(inside) <= set(KNOWN), f"new answers: {set(inside) - set(KNOWN)}"
    assert not set(inside) & set(NEVER)
    assert set(NEVER) <= set(table), f"no longer tried: {set(NEVER) - set(table)}"
    # Whatever the guest was refused must not be refused by accident: the host's own things do answer outside.
    for name in ("host_signal", "host_abstract_socket", "host_loopback", "host_path_socket", "host_file", "host_shm",
                 "host_proc:environ", "host_pidfd", "host_setown", "unshare_user", "io_uring_setup"):
        assert control[name][0] == "answered", f"{name} does not work outside either"


def test_surface_of_bwrap_for_comparison(host):
    if shutil.which("bwrap") is None:
        pytest.skip("bwrap is not installed")
    done = subprocess.run(["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
                           harness.guest("surface"), *map(str, host)], capture_output=True, text=True, timeout=harness.PATIENCE)
    assert done.returncode == 0, done.stderr
    table = answers(done.stdout)
    print(f"bwrap --unshare-all: {len(answered(table))} of {len(table)} answered")
    assert len(answered(table)) > MOST_ANSWERS, "the probe can't tell sandboxes apart"


def test_refused_calls_are_named_in_denials(host):
    result = harness.run_json("--output", "1M", *harness.inside("kernel", "surface", *host))
    denied = {denial["operation"]: denial for denial in result["denials"] if denial["kind"] == "syscall"}
    for name in ("mount", "bpf", "unshare", "keyctl", "ptrace", "socket"):
        assert name in denied, f"{name} was refused, but denials have only {sorted(denied)}"
        assert denied[name]["count"] >= 1 and denied[name]["rule"]
    assert denied["unshare"]["count"] == 8


# Each line of input is a number of calls to make; those that are made are told by a file, as the output is captured.
REFUSED = """
import ctypes, sys
libc = ctypes.CDLL(None)
for line in sys.stdin:
    for _ in range(int(line)): libc.mount(0, 0, 0, 0, 0)
    open('/shared/made', 'a').write(line)
"""


def denials_of(shared, *calls):
    """The result's denials, and how often belljar was woken while each part of the calls was made."""
    made = shared / "made"
    made.write_text("")
    made.chmod(0o666)
    process = subprocess.Popen([harness.BELLJAR, "run", "--json", "--rw", f"{shared}:/shared", "--", harness.PYTHON, "-c", REFUSED],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def woken():
        texts = [pathlib.Path(path).read_text() for path in glob.glob(f"/proc/{process.pid}/task/*/status")]
        return sum(int(count) for text in texts for count in re.findall(r"voluntary_ctxt_switches:\s*(\d+)", text))

    counts = []
    for number in calls:
        before = woken()
        process.stdin.write(f"{number}\n")
        process.stdin.flush()
        assert harness.wait_until(lambda: f"{number}\n" in made.read_text() or process.poll() is not None), "it hangs"
        counts.append(woken() - before)
    out, notes = process.communicate(timeout=harness.PATIENCE)
    assert process.returncode == 0, notes
    return {denial["operation"]: denial["count"] for denial in json.loads(out)["denials"] if denial["kind"] == "syscall"}, counts


def test_refused_calls_are_counted_up_to_ten_thousand(shared):
    """Exactly, as long as they are counted; a flood beyond costs belljar nothing, and the denials say that there were more."""
    denied, _ = denials_of(shared, 9_900)
    assert denied["mount"] == 9_900 and "more" not in denied, denied
    denied, (first, flood) = denials_of(shared, 12_000, 200_000)
    assert sum(count for call, count in denied.items() if call != "more") == 10_000 and "more" in denied, denied
    print(f"woken {first} and {flood} times")
    assert first > 1_000 and flood < 10_000, f"woken {first} times by the calls that are counted, {flood} times by those that are not"


@pytest.mark.parametrize("entry", ["int80", "x32"])
def test_foreign_entry_is_answered_by_death(entry):
    control = harness.outside("foreign", entry)
    if control.returncode != 0:
        print(f"vacuous: {entry} does not work outside either: {control.stdout}")
    result = harness.run_json(*harness.inside("kernel", "foreign", entry))
    assert result.verdict == "syscall", result
    assert result.status == 128 + 31
    assert result["stdout"] == ""
    assert "system call" in result["message"]
