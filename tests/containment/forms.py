"""Starting a guest in each form, for the tests of ways out, around or back in.

Level kernel has two forms: by namespaces, and by Landlock alone on hosts that forbid those. The second is not for root.
"""

import ctypes
import json
import pathlib
import re
import signal
import subprocess

import pytest

import harness
from harness import BELLJAR, GUESTS, guest

FORMS = ["namespaces"] if harness.IS_ROOT else ["namespaces", "landlock-only"]
forms = pytest.mark.parametrize("form", FORMS)
NOT_RUN = 125
LIBC = ctypes.CDLL(None, use_errno=True)


def command(form, *arguments):
    """`belljar run` in a form; the guests are there under their paths of the host, as Landlock alone can't move them."""
    prefix = [guest("forbid_userns")] if form == "landlock-only" else []
    return [*prefix, BELLJAR, "run", "--ro", GUESTS, *map(str, arguments)]


def start(where):
    """`belljar run` in a form of level kernel, or at level process."""
    return [BELLJAR, "run", "--level", "process"] if where == "process" else command(where)


everywhere = pytest.mark.parametrize("where", [*FORMS, "process"])


def run_form(form, *arguments, timeout=2 * harness.PATIENCE, **options):
    done = subprocess.run(command(form, "--json", *arguments), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", timeout=timeout, **options)
    assert done.stdout.count("\n") == 1, done
    result = harness.Result(json.loads(done.stdout))
    assert result["verdict"] in ("refused", "failed") or result["receipt"]["form"] == form, result["receipt"]["form"]
    return result


def answers(text):
    """What a guest has printed as "WAY done" and "WAY ERRNO": {way: errno, 0 when it was done}."""
    return {way: 0 if what == "done" else int(what) for way, what in re.findall(r"^(\S+) (done|\d+)$", text, re.M)}


def mistake(done, *words):
    """The caller is told: one line, the status of a run that never was, and what it is about."""
    assert done.returncode == NOT_RUN, done
    assert done.stdout == "" and done.stderr.startswith("belljar: ") and done.stderr.count("\n") == 1, done
    for word in words:
        assert str(word) in done.stderr, done.stderr


def contents(directory):
    return sorted(str(path.relative_to(directory)) for path in pathlib.Path(directory).rglob("*"))


def ignoring(*signals):
    """For preexec_fn: a caller that ignores signals hands that on to whatever it starts."""
    return lambda: [signal.signal(number, signal.SIG_IGN) for number in signals]
