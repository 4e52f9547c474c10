"""What the compatibility suite shares: starting a program inside, and keeping account of what was denied to it.

A strict wall that breaks real programs gets switched off. So every test here is a program doing its ordinary work, and
asserts on its real output. A program may succeed although calls of it were denied, by falling back to others. Each such
call must stand in the table of docs/compatibility.md with the reason why it does no harm; one that does not stand there
fails the test, so that the document stays true.

BELLJAR names the program under test. The programs that run inside are real files, under programs/.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BELLJAR = os.environ.get("BELLJAR", str(ROOT / "build/test/src/cli/belljar"))
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
DOCUMENT = ROOT / "docs" / "compatibility.md"
# Well above what any test takes on a busy machine: a hang must end the run by its own deadline, with a verdict.
WALL = "280s"

denied = {}  # operation -> {test: count}, for the summary at the end.


def documented_denials():
    """The names in the first column of the table under "Denied, and harmless"."""
    section = DOCUMENT.read_text(encoding="utf-8").split("## Denied, and harmless", 1)[1].split("\n## ", 1)[0]
    return set(re.findall(r"^\| `([a-z0-9_ ]+)`", section, re.M))


class Outcome:
    """A result of `belljar run --json`, with what a test asks about it."""

    def __init__(self, result, status):
        self.result = result
        self.status = status
        self.stdout = result["stdout"]
        self.stderr = result["stderr"]
        self.denials = result["denials"]

    def describe(self):
        keys = ("verdict", "exit_code", "signal", "message", "duration_ms", "usage", "denials")
        facts = "\n".join(f"{key}: {self.result.get(key)}" for key in keys)
        return f"{facts}\nstdout:\n{self.stdout}\nstderr:\n{self.stderr}"


class Sandbox:
    """Runs commands inside for one test."""

    def __init__(self, test):
        self.test = test

    def attempt(self, *argv, options=(), stdin="", env=None):
        """Runs without judging. The programs of this suite are at /programs."""
        command = [BELLJAR, "run", "--json", "--wall", WALL, "--ro", f"{PROGRAMS}:/programs", *map(str, options), "--",
                   *map(str, argv)]
        # HOME is the caller's matter outside and the profile's inside; PATH decides which interpreter is meant.
        process = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=300,
                                 env={**os.environ, **(env or {})})
        assert process.stdout.startswith("{"), f"no result: {process.returncode} {process.stdout}{process.stderr}"
        outcome = Outcome(json.loads(process.stdout), process.returncode)
        for denial in outcome.denials:
            print(f"denied: {denial['kind']} {denial['operation']} {denial['target']} ×{denial['count']}")
        return outcome

    def run(self, *argv, **arguments):
        """Runs what has to succeed; every denial on the way must be a documented one."""
        outcome = self.attempt(*argv, **arguments)
        assert outcome.result["verdict"] == "exited" and outcome.result["exit_code"] == 0, outcome.describe()
        assert outcome.status == 0
        assert outcome.result["receipt"]["level"] == "kernel"
        for denial in outcome.denials:
            tests = denied.setdefault(f"{denial['kind']} {denial['operation']}", {})
            tests[self.test] = tests.get(self.test, 0) + denial["count"]
        known = documented_denials()
        unknown = [d for d in outcome.denials if d["kind"] != "syscall" or d["operation"] not in known]
        assert not unknown, f"denied, and not in docs/compatibility.md: {unknown}"
        return outcome

    def bash(self, script, *arguments, **options):
        """A script that ends at its first failing command."""
        return self.run("bash", "-euo", "pipefail", "-c", script, "script", *arguments, **options)


@pytest.fixture
def sandbox(request):
    return Sandbox(request.node.name)


def find_tool(name, package=""):
    """The path of a tool outside; a test that can't have it is skipped with the package to install."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not here; install the Debian package {package or name}")
    return path


def system_tool(name, package=""):
    """As find_tool, for tools that the sandbox sees without being told: those under /usr."""
    path = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
    if path is None:
        pytest.skip(f"{name} is not under /usr; install the Debian package {package or name}")
    return path


@pytest.fixture
def tool():
    return find_tool


@pytest.fixture
def system():
    return system_tool


def pytest_terminal_summary(terminalreporter):
    if not denied:
        return
    terminalreporter.section("denied on the way to success")
    for operation, tests in sorted(denied.items()):
        who = ", ".join(f"{test} ×{count}" for test, count in sorted(tests.items()))
        terminalreporter.write_line(f"{operation}: {who}")
