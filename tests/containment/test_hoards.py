"""THREATS D: memory that the kernel holds for a guest. limits.memory has to hold for it too, whether a cgroup counts it, the
supervisor looks at it, or it can't be had.

Every kind is first made without the limit. With it, the guest tries for six times its limit and stays: it has to be refused or ended, by somebody
who may look late on a busy machine; the deadline, far away, is the wrong verdict.
"""

import re
import resource
import subprocess
from pathlib import Path

import pytest

import harness
from harness import by_cgroup, inside, outside, run_json

pytestmark = pytest.mark.usefixtures("leftovers")

LIMIT = 64  # MiB
# No cgroup counts these; they are bounded by looking, or refused, also where there is no cgroup at all.
UNCOUNTED = ["locks", "file-locks", "netlink", "unaccepted", "tiny", "corked", "shared", "zeros", "options", "lists"]
# Those that a cgroup counts. Where there is none, the receipt says that they are not. Entries of epoll are counted too, but
# bounded by their number long before (test_entries_of_epoll).
COUNTED = ["pairs", "datagrams", "pipes", "backlog", "notices", "messages", "semaphores", "page-tables", "links"]


FAR = "100s"


def hoard(kind, *way, size=6 * LIMIT):
    return run_json("--memory", f"{LIMIT}M", "--files", "1000000", "--wall", FAR, *inside("kernel", "hoard", kind, size, "stay", *way))


def check_ended(result):
    assert result.verdict == "out_of_memory", result
    assert "--memory" in result["message"] or "no policy allows more" in result["message"], result


@pytest.mark.parametrize("kind", UNCOUNTED)
def test_what_no_cgroup_counts(kind, tmp_path):
    control = outside("hoard", kind, 2 * LIMIT, cwd=tmp_path)
    assert control.stdout == f"made {2 * LIMIT}\n", control
    result = hoard(kind)
    watched = not by_cgroup(result, "memory limit")
    if kind in ("file-locks", "options", "lists") or (watched and kind == "zeros"):
        assert result["stdout"].startswith("refused 0 errno"), result
    elif watched and kind == "shared":  # A quarter of the limit, all in all.
        made = int(re.fullmatch(r"refused (\d+) errno \d+\n", result["stdout"])[1])
        assert 0 < made <= LIMIT / 4 and any(d["operation"] == "mmap" for d in result["denials"]), result
    else:
        check_ended(result)
        # By payload these are seen as well, once all are made and the kernel sends them again.
        assert kind != "tiny" or result["stdout"] == "", result


@pytest.mark.parametrize("way", ["undumpable", "leader-ended", "own-files", "maker-ended", "crowded"])
def test_locks_that_hide(way):
    result = hoard("locks", way, size=2 * LIMIT)  # No more than one process can hold, as its children would not hide.
    check_ended(result)
    assert way != "crowded" or result["stdout"] == "", result  # Long before it had all.


def test_entries_of_epoll():
    """Counted for a whole user. More memory does not allow more of them."""
    control = outside("hoard", "epoll", 24)
    assert control.stdout == "made 24\n", control
    result = run_json("--memory", "2G", "--wall", FAR, *inside("kernel", "hoard", "epoll", 24, "stay"))
    assert result.verdict == "out_of_memory" and "65,536 entries of epoll" in result["message"], result


@pytest.mark.parametrize("kind", ["polls", "selects"])
def test_waiting_for_many_files(kind):
    """The kernel charges it to nobody, and whoever writes to such a file has it go through all who wait, interrupts off."""
    control = outside("hoard", kind, 24, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096)))
    assert control.stdout == "made 24\n", control
    many = ["--memory", "2G", "--processes", "1000", "--open-files", "4096", "--wall", FAR]
    result = run_json(*many, *inside("kernel", "hoard", kind, 24, "stay"))
    assert result.verdict == "out_of_memory" and "poll() for 131,072 files" in result["message"], result


def test_waiting_for_many_files_after_a_stop():
    """What the kernel tells of a thread then is another call."""
    control = outside("hoard", "polls", 24)
    assert control.stdout == "made 24\n", control
    many = ["--memory", "2G", "--processes", "1000", "--open-files", "4096", "--wall", FAR]
    result = run_json(*many, *inside("kernel", "hoard", "polls", 24, "stay", "stopped"))
    assert result.verdict == "out_of_memory" and "poll() for 131,072 files" in result["message"], result


CROWD = """
import os, resource, sys, time
many = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 16
read, write = os.pipe()
for process in range(int(sys.argv[1])):
    if os.fork() == 0:
        for i in range(many): os.dup(0)
        os.write(write, b'x')
        time.sleep(600)
for process in range(int(sys.argv[1])): os.read(read, 1)
print('made', flush=True)
if sys.argv[2:] != ['leave']: time.sleep(600)
"""


def test_more_descriptors_than_can_be_looked_at():
    """Timers and the like have one each that no cgroup counts, the host has so many open files, and who looks for locks takes
    longer the more there are."""
    words = ["--memory", "2G", "--open-files", "4096", "--wall", FAR, "--", harness.PYTHON, "-c", CROWD]
    result = run_json(*words, "60")
    assert result.verdict == "out_of_memory" and "131,072 open descriptors" in result["message"], result
    control = run_json(*words, "20", "leave")
    assert control.verdict == "exited" and control["stdout"] == "made\n", control


IN_FLIGHT = """
import array, os, socket, sys, time
kept = []
for i in range(int(sys.argv[1])):
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    b.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [a.fileno()]))])
    b.close()
    kept.append(a)
print('made', flush=True)
if sys.argv[2:] != ['leave']: time.sleep(600)
"""


def test_descriptors_in_flight():
    """The kernel goes through all of them at each close of a socket, and charges it to nobody."""
    words = ["--open-files", "4096", "--wall", FAR, "--", harness.PYTHON, "-c", IN_FLIGHT]
    result = run_json(*words, "2000")
    assert result.verdict == "out_of_memory" and "1,024 on their way in sockets" in result["message"], result
    control = run_json(*words, "500", "leave")
    assert control.verdict == "exited" and control["stdout"] == "made\n", control


def test_more_files_than_can_be_waited_for_at_once():
    script = ("import select, resource; resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096)); p = select.poll()\n"
              "import os\nfor i in range(3000): p.register(os.dup(0), select.POLLPRI)\nprint(p.poll(0))")
    control = subprocess.run(["/usr/bin/python3", "-c", script], capture_output=True, text=True, timeout=harness.PATIENCE)
    assert control.stdout == "[]\n", control
    result = run_json("--open-files", "4096", "--", "/usr/bin/python3", "-c", script)
    assert "Invalid argument" in result["stderr"] and any(d["operation"] == "poll" for d in result["denials"]), result


def test_descriptors_that_take_long_to_describe(tmp_path):
    """Whoever looks at the guest's open files must not be held up by them: it keeps deadlines and moves output meanwhile."""
    control = outside("hoard", "marks", 2, cwd=tmp_path)
    assert control.stdout == "made 2\n", control
    result = run_json("--processes", "64", "--wall", FAR, *inside("kernel", "hoard", "marks", 40, "stay"))
    assert result.verdict == "out_of_memory" and "131,072 watches" in result["message"], result


@pytest.mark.long
def test_memory_of_tcp_is_that_of_the_host():
    """All network namespaces share it. Who has much of it is ended before the host saves on everybody's."""
    pool = int(Path("/proc/sys/net/ipv4/tcp_mem").read_text().split()[0]) * resource.getpagesize() >> 20
    if 2 * pool > int(re.search(r"MemAvailable: *(\d+)", Path("/proc/meminfo").read_text())[1]) >> 10:
        pytest.skip("too little memory to fill what TCP may have")
    result = run_json("--memory", f"{8 * pool}M", "--open-files", "4096", "--wall", FAR,
                      *inside("kernel", "hoard", "unaccepted", 2 * pool, "stay"))
    assert result.verdict == "out_of_memory" and "net.ipv4.tcp_mem" in result["message"], result


@pytest.mark.long
def test_connections_that_are_closed_and_not_done():
    """The host has a bound for all orphans together, and resets everybody's connections beyond it."""
    control = outside("hoard", "orphans", 8)
    assert control.stdout == "made 8\n", control
    result = run_json("--memory", "8G", "--open-files", "4096", "--wall", FAR, *inside("kernel", "hoard", "orphans", 600, "stay"))
    assert result.verdict == "out_of_memory" and "orphaned TCP" in result["message"], result


@pytest.mark.parametrize("kind", ["groups", "old-groups"])
def test_groups_without_a_bound(kind):
    """Of IPv6. Those of IPv4 have a bound for each socket, but take minutes to end when there are many sockets."""
    control = outside("hoard", kind, 1)
    assert control.stdout == "made 1\n", control
    assert hoard(kind, size=1)["stdout"].startswith("refused 0 errno")


if harness.IS_ROOT:  # Who has a cgroup.
    @pytest.mark.parametrize("kind", [pytest.param(kind, marks=() if kind == "page-tables" else pytest.mark.long) for kind in COUNTED])
    def test_what_a_cgroup_counts(kind):
        # The control is inside as well: some of these would outlive it outside.
        control = run_json("--memory", "1G", "--tmp", "1G", "--disk", "1G", "--files", "1000000", "--wall", FAR,
                           *inside("kernel", "hoard", kind, LIMIT + 8))
        assert control["stdout"].startswith("made "), control
        result = hoard(kind)
        assert by_cgroup(result, "memory limit")
        check_ended(result)


def test_the_receipt_names_what_threads_may_hold():
    """In poll() and sendmsg(): much beside little memory, little beside much. Without a cgroup it is one of many."""
    for flags, states in (["--memory", "64M", "--processes", "64"], {"enforced"}), (["--memory", "64M"], {"partial"}), ([], {"enforced"}):
        line = harness.guard(run_json(*flags, "--", "/bin/true"), "memory limit")
        assert line["state"] in states or "cgroup" not in line["by"], line


def test_the_receipt_names_what_is_not_counted():
    """In the host's network nobody can tell whose sockets they are; at level process nothing refuses locks of open files."""
    for arguments, word in (["--net", "host", "--dangerously-share-host-network"], "sockets"), (["--level", "process"], "lock"):
        line = harness.guard(run_json(*arguments, "--", "/bin/true"), "memory limit")
        assert line["state"] == "partial" and (word in line["reason"] or "cgroup" not in line["by"]), line
