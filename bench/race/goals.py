"""The goals for speed, and whether one run of the bench met them. Ratios within the run, never milliseconds."""

import dataclasses


@dataclasses.dataclass
class Goal:
    text: str
    at_most: bool
    limit: float
    measured: object  # rows of all works -> number or None
    unit: str = "×"


def value(rows, work, name, key):
    return rows.get(work, {}).get(name, {}).get(key)


def quotient(work, name, base, key="p50_ms"):
    def measured(rows):
        top, bottom = value(rows, work, name, key), value(rows, work, base, key)
        return top / bottom if top and bottom else None
    return measured


def new_sandboxes(base):
    """The faster of the library's two ways to a new sandbox."""
    def measured(rows):
        rates = [value(rows, "throughput", name, "per_second") for name in ("library", "library-warm")]
        rates = [rate for rate in rates if rate]
        bottom = value(rows, "throughput", base, "per_second")
        return max(rates) / bottom if rates and bottom else None
    return measured


def stream_share(rows):
    """The worse of two pairs: all output kept by both, and none (or its ends only) kept by both."""
    shares = [quotient("stdout", plain, ours)(rows) for plain, ours in (("posix_spawn", "library"), ("pipe", "library-tail"))]
    return None if None in shares else min(shares)


GOALS = [
    Goal("`belljar run -- /bin/true`, against bwrap --unshare-all", True, 0.6, quotient("start", "belljar", "bwrap")),
    Goal("library: new sandbox, /bin/true, result; against raw clone with the same namespaces", True, 1.6,
         quotient("start", "library", "clone")),
    Goal("library: the same from the warm pool, against posix_spawn", True, 1.5, quotient("start", "library-warm", "posix_spawn")),
    Goal("library: /bin/true in a live sandbox, against posix_spawn", True, 1.3, quotient("start", "library-exec", "posix_spawn")),
    Goal("new sandboxes a second on all cores, against raw clone", False, 0.9, new_sandboxes("clone")),
    Goal("new sandboxes a second on all cores, against bwrap", False, 4.0, new_sandboxes("bwrap")),
    Goal("p99 / p50 of new sandboxes under that load", True, 4.0, lambda rows: value(rows, "throughput", "library", "p99_over_p50")),
    Goal("system calls inside, against outside", True, 1.05, quotient("syscalls", "library", "posix_spawn")),
    Goal("64 MB of output through the library, share of a plain pipe's speed", False, 0.8, stream_share),
    Goal("sandbox whose guest sleeps, memory of all our processes", True, 400, lambda rows: value(rows, "live", "library", "pss_kb"),
         "KB"),
    Goal("idle live sandbox, memory of all our processes", True, 400, lambda rows: value(rows, "live", "library-exec", "pss_kb"), "KB"),
    Goal("library: a caller of 256 MB, against a small one", True, 1.2, quotient("start", "library-large", "library")),
]


def evaluate(rows):
    """One dict a goal. `state` is met, missed, or "not measured" when a row it needs is not there."""
    found = []
    for goal in GOALS:
        measured = goal.measured(rows)
        state = "not measured"
        if measured is not None:
            state = "met" if (measured <= goal.limit) == goal.at_most or measured == goal.limit else "missed"
        found.append({"goal": goal.text, "limit": goal.limit, "at_most": goal.at_most, "unit": goal.unit, "measured": measured,
                      "state": state})
    return found
