"""Racers: processes that do one kind of run again and again (bench/programs/racer.h), and the interleaving of them."""

import math
import select
import subprocess

from .stage import Skip

NOT_THERE_YET = 3


class Racer:
    """One contender at one work. Its process lives as long as this object."""

    def __init__(self, identity, argv, options, library=False):
        stage = identity.stage
        self.identity = identity
        self.argv = [*identity.prefix, str(stage.library_racer if library else stage.spawn_racer), *options, "--", *map(str, argv)]
        self.errors = open(stage.dir / "racer-errors", "w+", encoding="utf-8", errors="replace")
        self.process = subprocess.Popen(self.argv, env=identity.env, cwd="/", text=True, bufsize=1, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors)

    def ask(self, question, timeout=60.0):
        """The numbers of one answer; raises Skip when the racer can't."""
        try:
            self.process.stdin.write(question + "\n")
        except BrokenPipeError:
            pass
        if not select.select([self.process.stdout], [], [], timeout)[0]:
            raise Skip(f"no answer to '{question}' within {timeout:.0f} s")
        answer = self.process.stdout.readline().strip()
        if answer.startswith("ok "):
            return [float(word) for word in answer.split()[1:]]
        if not answer:
            if self.process.wait() == NOT_THERE_YET:
                raise Skip("not there yet")
            self.errors.seek(0)
            answer = f"failed the racer ended: {self.errors.read().strip()[-300:]}"
        raise Skip(answer.removeprefix("failed "))

    def once(self):
        return self.ask("once")[0] / 1e6

    def close(self):
        try:
            self.process.stdin.close()
            self.process.wait(3)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()


def percentile(samples, share):
    ordered = sorted(samples)
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def median(samples):
    return percentile(samples, 0.5)


def interleave(racers, rounds, budget):
    """Milliseconds of each racer: a, b, c, a, b, c … so that a noisy moment meets all of them. One that would take more than
    its budget of seconds takes part in every second, third … round only, and always in at least three."""
    times, stride, failed = {}, {}, {}
    for name, racer in racers.items():
        try:
            warm = [racer.once()]  # pays for cold caches
            if warm[0] < 1000:
                warm.append(racer.once())
            affordable = max(3.0, budget * 1000 / warm[-1])
            times[name], stride[name] = [], max(1, math.ceil(rounds / affordable))
        except Skip as skip:
            failed[name] = str(skip)
    for i in range(rounds):
        for name in list(times):
            if i % stride[name] != 0:
                continue
            try:
                times[name].append(racers[name].once())
            except Skip as skip:
                failed[name] = f"failed in round {i + 1}: {skip}"
                del times[name]
    return times, failed


def interleave_load(racers, seconds, jobs, slices=5):
    """Throughput of each racer: its seconds are cut into slices, and those are interleaved."""
    loads, failed = {name: [] for name in racers}, {}
    for _ in range(slices):
        for name in list(loads):
            try:
                loads[name].append(racers[name].ask(f"load {seconds / slices} {jobs}", timeout=seconds + 120))
            except Skip as skip:
                failed[name] = str(skip)
                del loads[name]
    return loads, failed
