"""Both levels, and times, for tests of guests that eat the host."""

import pytest

LEVELS = ["kernel", "process"]
both = pytest.mark.parametrize("level", LEVELS)

NS = 1_000_000_000
FAR = ["--wall", "100s"]  # Beyond PATIENCE, and before the harness gives belljar up: what lasts until then has the wrong verdict.


def at_levels(name, gate, rest):
    """Parameters for both levels; the rest, kinds that meet the same guard in the same way, only in a long run."""
    return pytest.mark.parametrize(name, [*gate, *(pytest.param(kind, marks=pytest.mark.long) for kind in rest)])


def deadlines(milliseconds):
    """To be tried one after another, while a busy machine starts the guest so late that it has not done yet what is tested."""
    return [f"{milliseconds * factor}ms" for factor in (1, 10, 100)]
