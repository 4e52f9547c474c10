"""THREATS D: memory that the kernel holds for a guest. limits.memory has to hold for it too, whether a cgroup counts it, the
supervisor looks at it, or it can't be had.

Every kind is first made outside. Inside, the guest tries for six times its limit and stays: it has to be refused or ended, by somebody
who may look late on a busy machine; the deadline, far away, is the wrong verdict.
"""

import re

import pytest

import harness
from harness import by_cgroup, inside, outside, run_json

pytestmark = pytest.mark.usefixtures("leftovers")

LIMIT = 64  # MiB
# No cgroup counts these; they are bounded by looking, or refused, also where there is no cgroup at all.
UNCOUNTED = ["locks", "file-locks", "netlink", "unaccepted", "corked", "shared", "zeros"]
# Those that a cgroup counts. Where there is none, the receipt says that they are not.
COUNTED = ["pairs", "datagrams", "pipes", "backlog", "epoll", "notices", "messages", "semaphores", "page-tables", "attributes", "links"]


def hoard(kind):
    return run_json("--memory", f"{LIMIT}M", "--files", "1000000", "--wall", "100s", *inside("kernel", "hoard", kind, 6 * LIMIT, "stay"))


def check_control(kind, tmp_path):
    done = outside("hoard", kind, 2 * LIMIT, cwd=tmp_path)
    assert done.stdout == f"made {2 * LIMIT}\n", done


def check_bounded(kind, result):
    if refused := re.fullmatch(r"refused (\d+) errno \d+\n", result["stdout"]):
        assert int(refused[1]) <= 2 * LIMIT
    else:
        assert result.verdict == "out_of_memory", result
        assert "--memory" in result["message"]


@pytest.mark.parametrize("kind", UNCOUNTED)
def test_what_no_cgroup_counts(kind, tmp_path):
    check_control(kind, tmp_path)
    check_bounded(kind, hoard(kind))


if harness.IS_ROOT:  # Who has a cgroup.
    @pytest.mark.parametrize("kind", [pytest.param(kind, marks=() if kind == "page-tables" else pytest.mark.long) for kind in COUNTED])
    def test_what_a_cgroup_counts(kind):
        result = hoard(kind)
        assert by_cgroup(result, "memory limit")
        check_bounded(kind, result)


def test_the_receipt_names_what_is_not_counted():
    """In the host's network nobody can tell whose sockets they are; at level process nothing refuses locks of open files."""
    for arguments in (["--net", "host", "--dangerously-share-host-network"], ["--level", "process"]):
        line = harness.guard(run_json(*arguments, "--", "/bin/true"), "memory limit")
        assert line["state"] == "partial" and "not" in line["reason"], line
