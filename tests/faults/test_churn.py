"""Many mixed runs in one process, through the library: its memory stays flat, its descriptors and all that a run makes on the
host (processes, mounts, control groups, namespaces, directories) are gone at the end.

10,000 runs. tests/integration/test_leftovers.py does the same with a program for each run.
"""

import contextlib
import json
import os
import pathlib
import statistics
import subprocess

import pytest

import harness
from harness import guest

pytestmark = pytest.mark.long
RUNS = 10_000


def namespaces():
    """All namespaces that processes below this one are in."""
    found = set()
    for pid in harness.descendants():
        for path in pathlib.Path(f"/proc/{pid}/ns").glob("*"):
            with contextlib.suppress(OSError):
                found.add(os.readlink(path))
    return found


def test_many_runs_in_one_process(faults, leftovers):
    before = namespaces()
    done = subprocess.run([guest("churn"), str(RUNS), harness.GUESTS], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=2400)
    *samples, verdicts = map(json.loads, done.stdout.splitlines())
    assert done.returncode == 0, f"{verdicts}\n{done.stderr}"
    # The first tenth fills caches: of the allocator, of what the host can do.
    settled = samples[len(samples) // 10:]
    assert {sample["descriptors"] for sample in settled} == {settled[0]["descriptors"]}, settled
    third = len(settled) // 3
    first, last = (statistics.median(sample["resident"] for sample in part) for part in (settled[:third], settled[-third:]))
    assert last - first < 256, f"resident memory grows from {first} to {last} kB"
    harness.reap_janitors()
    if not harness.wait_until(lambda: not namespaces() - before):
        raise harness.LeftBehind(f"namespaces: {sorted(namespaces() - before)}")
    leftovers.check()
    verdicts.pop("wrong")
    for verdict, count in verdicts.items():
        faults.record("mixed runs in one process", "library", f"verdict {verdict}", count)
    print(verdicts, f"resident {first} to {last} kB, {settled[-1]['descriptors']} descriptors")
