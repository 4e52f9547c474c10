"""Memory of sandboxes that are alive and idle: PSS of every process that is there because of the sandbox, without the guest."""

import contextlib
import pathlib
import re
import time

from .stage import Skip

GUESTS = ("cat", "sleep")  # by name; what they use is not the sandbox's


def parents():
    """{pid: (parent, name)} of all processes."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            match = re.match(r"(\d+) \((.*)\) \S (\d+)", path.read_text(errors="replace"), re.S)
            found[int(match[1])] = (int(match[3]), match[2])
    return found


def below(roots):
    """{pid: name} of the roots and everything below them."""
    table = parents()
    children = {}
    for pid, (parent, _) in table.items():
        children.setdefault(parent, []).append(pid)
    found, todo = {}, [pid for pid in roots if pid in table]
    while todo:
        pid = todo.pop()
        found[pid] = table[pid][1]
        todo += children.get(pid, [])
    return found


def pss_kb(pid):
    """None where this user may not look."""
    with contextlib.suppress(OSError):
        for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return None


def available_kb():
    with open("/proc/meminfo", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("MemAvailable:"))


def wait_for_guests(everything, before, count):
    deadline = time.monotonic() + 20 + count / 5
    while True:
        processes = everything()
        guests = [pid for pid, name in processes.items() if name in GUESTS and pid not in before]
        if len(guests) >= count:
            return processes, guests
        if time.monotonic() > deadline:
            raise Skip(f"only {len(guests)} of {count} guests came up")
        time.sleep(0.2)


def measure_one(racer, contender, count):
    guest_count = 0 if contender.idle else count

    def everything():
        return below([racer.process.pid, *contender.helpers()])

    before = {pid: pss_kb(pid) or 0 for pid in everything()}
    memory = available_kb()
    try:
        racer.ask(f"keep {count}", timeout=60 + count)
        processes, guests = wait_for_guests(everything, before, guest_count)
        time.sleep(1)  # what sets up the last ones settles
        used, unseen = 0, 0
        for pid in processes.keys() - set(guests):
            size = pss_kb(pid)
            if size is None and pid in everything():
                unseen += 1
            used += (size or 0) - before.get(pid, 0)
        row = {"runs": count, "pss_kb": used / count, "processes_each": (len(processes) - len(before) - guest_count) / count}
        # What the kernel keeps for a sandbox is in no process; below a hundred of them it drowns in what others do.
        row["system_kb"] = (memory - available_kb()) / count if count >= 100 else None
    finally:
        with contextlib.suppress(Skip):  # must not hide why it came to this, an ending by signal least of all
            racer.ask("drop", timeout=180)
    if unseen:
        raise Skip(f"{unseen} of its processes can't be looked at by this user; as root: bench/run --user")
    return row


def measure(racers, contenders, count):
    rows, failed = {}, {}
    for contender in contenders:
        if contender.name not in racers:
            continue
        try:
            wanted = max(1, int(count * contender.live_share))
            rows[contender.name] = measure_one(racers[contender.name], contender, wanted)
        except Skip as skip:
            failed[contender.name] = str(skip)
    return rows, failed
