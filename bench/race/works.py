"""What is raced: each work gives rows, one a contender."""

import os
import shutil
import subprocess

from . import live
from .racers import Racer, interleave, interleave_load, median, percentile
from .stage import Skip, warn

BUILD = 'd=$(mktemp -d "$1"/bench.XXXXXX) && cp -r "$0"/. "$d" && make -s -C "$d" && "$d"/prog; s=$?; rm -rf "$d"; exit $s'
PYTHON = "/usr/bin/python3"


class Work:
    """A command and how its time is taken. `here` is where the guest sees the files of the stage, `scratch` a directory in
    memory that it may write to: a disk outside against memory inside would flatter every sandbox."""

    def __init__(self, name, title, argv, out="drop", mount=False):
        self.name, self.title, self.argv, self.out, self.mount = name, title, argv, out, mount


WORKS = [
    Work("start", "start and end of /bin/true", lambda here, scratch: ["/bin/true"]),
    Work("throughput", "/bin/true on all cores", lambda here, scratch: ["/bin/true"]),
    Work("python", "a Python one-liner", lambda here, scratch: [PYTHON, "-c", "print(6*7)"]),
    Work("stdout", "64 MB of standard output", lambda here, scratch: ["/usr/bin/head", "-c", str(64 << 20), "/dev/zero"], out="keep"),
    Work("syscalls", "5,000 rounds of ten cheap system calls", lambda here, scratch: [f"{here}/syscalls", "5000"], "report", True),
    Work("build", "a build of six C files", lambda here, scratch: ["/bin/sh", "-c", BUILD, f"{here}/project", scratch], mount=True),
    Work("live", "sandboxes alive at once", lambda here, scratch: ["/bin/cat"]),
]


def make_racer(contender, work):
    argv = work.argv(contender.stage.shared if contender.guest_sees_host else "/bench", contender.scratch)
    if contender.library and work.name == "live":
        # Ended by cancelling; the others' guests read standard input.
        argv = ["/bin/true"] if contender.idle else ["/bin/sleep", "100000"]
    if not contender.library:
        argv = contender.wrap(argv, work)
    return Racer(contender.identity, argv, contender.options(work), contender.library)


def counters():
    """Why there are no instruction counts; empty when there are."""
    if shutil.which("perf") is None:
        return "perf is not installed"
    done = subprocess.run(["perf", "stat", "-x,", "-e", "instructions", "true"], capture_output=True, text=True)
    if done.returncode != 0 or "not supported" in done.stderr or "not counted" in done.stderr:
        return "this machine gives no hardware counters to perf (usual in virtual machines)"
    return ""


def instructions(contender, work, runs=20):
    """Instructions a run, by perf over the racer and all it starts; what daemons do is not in it."""
    totals = []
    racer = make_racer(contender, work)
    racer.close()
    for count in (0, runs):
        done = subprocess.run(["perf", "stat", "-x,", "-e", "instructions", "--", *racer.argv], input="once\n" * count, text=True,
                              capture_output=True, env=contender.identity.env, cwd="/")
        numbers = [line.split(",")[0] for line in done.stderr.splitlines() if "instructions" in line]
        if not numbers or not numbers[0].isdigit():
            return None
        totals.append(int(numbers[0]))
    return (totals[1] - totals[0]) / runs


def timed_rows(times):
    rows = {}
    for name, samples in times.items():
        row = rows[name] = {"runs": len(samples), "p50_ms": median(samples), "p90_ms": percentile(samples, 0.9)}
        # The 99th percentile of a dozen samples is only their maximum under a better name.
        row["p99_ms"] = percentile(samples, 0.99) if len(samples) >= 100 else None
    return rows


def load_rows(loads):
    rows = {}
    for name, slices in loads.items():
        runs = sum(part[0] for part in slices)
        rows[name] = {"runs": int(runs), "per_second": runs / sum(part[1] for part in slices),
                      "cpu_ms": sum(part[5] for part in slices) / runs / 1e6,
                      "machine_cpu_ms": sum(part[6] for part in slices) / runs / 1e6}
        for index, key in ((2, "p50_ms"), (3, "p90_ms"), (4, "p99_ms")):
            rows[name][key] = median([part[index] for part in slices]) / 1e6
        rows[name]["p99_over_p50"] = rows[name]["p99_ms"] / rows[name]["p50_ms"]
    return rows


def race(work, contenders, options, no_counters):
    """The rows of one work: {contender: row}; those that could not take part have only `skipped`."""
    racers, rows = {}, {}
    try:
        for contender in contenders:
            try:
                racers[contender.name] = make_racer(contender, work)
            except Skip as skip:
                rows[contender.name] = {"skipped": str(skip)}
        if work.name == "throughput":
            loads, failed = interleave_load(racers, options.seconds, options.jobs)
            rows.update(load_rows(loads))
        elif work.name == "live":
            found, failed = live.measure(racers, contenders, options.live)
            rows.update(found)
        else:
            times, failed = interleave(racers, options.rounds(work.name), options.budget)
            rows.update(timed_rows(times))
    finally:
        for racer in racers.values():
            racer.close()
    for name, why in failed.items():
        rows[name] = {"skipped": why}
        if why != "not there yet":
            warn(f"{work.name}: {name} is skipped: {why}")
    if not no_counters and work.name == "start":
        for contender in contenders:
            if not rows[contender.name].get("skipped"):
                rows[contender.name]["instructions"] = instructions(contender, work)
    return rows


def add_ratios(work, contenders, rows):
    """A ratio above 1 is slower, fewer or larger than the base, in every work."""
    for contender in contenders:
        base = contender.base_by_work.get(work, contender.base) if contender.library else contender.base
        if base == "bwrap" and work in ("stdout", "syscalls", "build", "python"):
            base = "posix_spawn"  # what the work costs by itself
        if work == "live":
            base = "bwrap" if contender.name != "bwrap" else None
        row, other = rows[contender.name], rows.get(base, {})
        row["base"], row["ratio"] = base, None
        key = {"throughput": "per_second", "live": "pss_kb"}.get(work, "p50_ms")
        if row.get(key) and other.get(key):
            row["ratio"] = row[key] / other[key]


def cores():
    return len(os.sched_getaffinity(0))
