"""bench/run --soak MINUTES: the library at full throughput; nothing that it holds may grow."""

import glob
import os
import pathlib
import threading
import time

from . import live
from .contenders import Library
from .racers import Racer, median
from .stage import Skip

# How much the median of the last third may be above that of the first: what is in flight differs from sample to sample.
ALLOWED = {"rss_kb": (1.05, 1024), "fds": (1.0, 8), "threads": (1.0, 2), "processes": (1.0, 8), "cgroups": (1.0, 8),
           "all_cgroups": (1.0, 200), "mounts": (1.0, 4)}


def cgroups(pid):
    """Control groups of the racer's sandboxes; their names carry its pid."""
    return len(glob.glob(f"/sys/fs/cgroup/**/belljar*-{pid}-*", recursive=True))


def all_cgroups():
    """Those of the whole machine, with the ones that are removed and not yet freed, which no directory shows any more."""
    with open("/proc/cgroups", encoding="ascii") as file:
        return max(int(line.split()[2]) for line in file if not line.startswith("#"))


def sample(pid):
    status = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        mounts = sum(1 for _ in file)
    return {"rss_kb": int(status["VmRSS"].split()[0]), "fds": len(os.listdir(f"/proc/{pid}/fd")),
            "threads": int(status["Threads"]), "processes": len(live.below([pid])), "cgroups": cgroups(pid),
            "all_cgroups": all_cgroups(), "mounts": mounts}


def verdicts(samples):
    """{what: (first third, last third, grew)}; the first tenth is warming up and does not count."""
    kept = samples[len(samples) // 10:]
    third = max(1, len(kept) // 3)
    found = {}
    for what, (factor, slack) in ALLOWED.items():
        first, last = median([s[what] for s in kept[:third]]), median([s[what] for s in kept[-third:]])
        found[what] = (first, last, last > first * factor + slack)
    return found


def soak(identity, minutes, jobs, every, leak):
    """Runs, prints a line a sample, and returns a dict whose `grew` names what grew."""
    contender = Library(identity)
    contender.prepare()
    racer = Racer(identity, ["/bin/true"], ["--mode", "cold", *(["--leak"] if leak else [])], library=True)
    answer, samples = [], []

    def load():
        try:
            answer.extend(racer.ask(f"load {minutes * 60} {jobs}", timeout=minutes * 60 + 120))
        except Skip as skip:
            answer.append(str(skip))

    worker = threading.Thread(target=load)
    worker.start()
    began = time.monotonic()
    try:
        while worker.is_alive():
            worker.join(every)
            if worker.is_alive():
                seen = sample(racer.process.pid)
                samples.append({"seconds": round(time.monotonic() - began, 1), **seen})
                print(f"{samples[-1]['seconds']:7.0f} s  " + "  ".join(f"{key} {value}" for key, value in seen.items()), flush=True)
    finally:
        worker.join()
        racer.close()
    if len(answer) == 1:
        return {"failed": answer[0], "samples": samples, "grew": []}
    if len(samples) < 3:
        return {"failed": f"only {len(samples)} samples; soak longer, or sample more often (--every)", "samples": samples, "grew": []}
    judged = verdicts(samples)
    for what, (first, last, grew) in judged.items():
        print(f"{what:10} {first:12.0f} -> {last:12.0f}  {'GREW' if grew else 'flat'}")
    print(f"{answer[0]:.0f} runs, {answer[0] / answer[1]:.0f} a second, p50 {answer[2] / 1e6:.2f} ms, p99 {answer[4] / 1e6:.2f} ms")
    return {"runs": answer[0], "per_second": answer[0] / answer[1], "p50_ms": answer[2] / 1e6, "p99_ms": answer[4] / 1e6,
            "samples": samples, "grew": [what for what, judged_one in judged.items() if judged_one[2]]}
