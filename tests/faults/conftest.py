"""Every fault that a test of this folder makes is counted: what failed, where, how often, and what came of it.

BELLJAR_FAULT_TABLE names a file to write the counts to as tables (docs/faults.md is one such file): the section of the user
who runs the tests is replaced, the rest of the file stays.
"""

import collections
import os
import pathlib
import re

import pytest

import harness

ROWS = collections.OrderedDict()


class Faults:
    """What the tests write their rows with."""

    @staticmethod
    def record(fault, where, outcome, count=1):
        ROWS.setdefault((fault, where), collections.Counter())[outcome] += count


@pytest.fixture(scope="session")
def faults():
    return Faults()


def section():
    lines = ["| fault | where | times | what happened |", "|---|---|---|---|"]
    for (fault, where), outcomes in sorted(ROWS.items()):
        what = "; ".join(f"{outcome}: {count:,}" for outcome, count in outcomes.most_common() if count)
        lines.append(f"| {fault} | {where} | {sum(outcomes.values()):,} | {what} |")
    return "\n".join(lines)


def pytest_sessionfinish(session):
    target = os.environ.get("BELLJAR_FAULT_TABLE")
    if not target or not ROWS:
        return
    path = pathlib.Path(target)
    title = "## As root" if harness.IS_ROOT else "## As an unprivileged user"
    text = path.read_text(encoding="utf-8") if path.exists() else "# Faults\n"
    block = f"{title}\n\n{section()}\n"
    pattern = re.compile(re.escape(title) + r"\n.*?(?=^## |\Z)", re.S | re.M)
    text = pattern.sub(lambda _: block + "\n", text) if pattern.search(text) else text.rstrip("\n") + "\n\n" + block
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
