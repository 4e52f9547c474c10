"""The runner of the checks: which failures are tried again, which never, and that none is lost."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))
import report  # noqa: E402
import run_all  # noqa: E402

SAMPLE = """
import harness, pathlib, pytest

@pytest.fixture
def leak():
    yield
    raise harness.LeftBehind("x")

def test_passes(): pass
def test_fails(): assert 0
def test_leaks(leak): pass
def test_fails_and_leaks(leak): assert 0
def test_escapes(): raise harness.Escape("x")
@pytest.mark.parametrize("odd", ["a b", "/a//b[c]"])
def test_odd_name(odd): assert 0
def test_skips(): pytest.skip("why")
@pytest.mark.long
def test_campaign(): assert 0
"""


@pytest.fixture
def outcomes(tmp_path):
    """What the runner reads of the sample: {name of the file and the test: outcome}."""
    for name in ("conftest.py", "harness.py"):
        shutil.copy(TESTS / name, tmp_path)
    for name in ("containment", "others"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"test_{name}.py").write_text(SAMPLE)
    done = subprocess.run(["/usr/bin/python3", "-m", "pytest", "-p", "no:cacheprovider", "-q", f"--junitxml={tmp_path}/junit.xml",
                           f"--rootdir={tmp_path}", tmp_path], capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, "BELLJAR_LONG": ""})  # The sample is of the gate, whoever runs this.
    return report.read_junit("sample", tmp_path / "junit.xml", done.stdout, done.returncode)


def names(outcomes, wanted):
    return sorted(o.name.partition(".")[2] for o in outcomes if wanted(o))


def test_which_failures_may_be_tried_again(outcomes):
    assert names(outcomes, lambda o: o.state == "failed" and o.id and not o.final) == [
        "test_others::test_fails", "test_others::test_odd_name[/a//b[c]]", "test_others::test_odd_name[a b]"]


def test_every_failure_is_seen(outcomes):
    failed = set(names(outcomes, lambda o: o.state == "failed"))
    for module in ("test_containment", "test_others"):
        assert {f"{module}::{test}" for test in ("test_fails", "test_leaks", "test_fails_and_leaks", "test_escapes")} <= failed
    assert names(outcomes, lambda o: o.state == "skipped") == ["test_containment::test_skips", "test_others::test_skips"]
    assert not names(outcomes, lambda o: "campaign" in o.name), "that is for --long"


class Runner(run_all.Run):
    """Without anything to run."""

    def __init__(self):
        self.doubts = []
        self.report = report.Report()
        self.tried = []


@pytest.fixture
def runner(tmp_path, monkeypatch, capsys):
    runner = Runner()
    monkeypatch.setattr(report, "ROOT", tmp_path)  # The log of flaky tests.
    return runner


def failure(name, final=False, id=None):
    return report.Outcome("sample", name, "failed", "why", id=name if id is None else id, final=final)


@pytest.mark.parametrize("passes_at, state, tries", [(1, "passed", 1), (2, "passed", 2), (3, "failed", 2)])
def test_up_to_two_more_tries(runner, tmp_path, passes_at, state, tries):
    def again(name):
        runner.tried.append(name)
        return len(runner.tried) >= passes_at

    runner.take([failure("one")], again)
    assert runner.report.outcomes == [], "judged only when its phase is over"
    runner.try_again()
    assert [o.state for o in runner.report.outcomes] == [state] and len(runner.tried) == tries
    assert [o.name for o in runner.report.flaky] == (["one"] if state == "passed" else [])
    assert (tmp_path / "build/flaky.log").exists() == (state == "passed")


def test_final_failures_are_judged_at_once(runner):
    runner.take([failure("escape", final=True), failure("no name of its own", id="")], lambda name: pytest.fail("tried again"))
    runner.try_again()
    assert [o.state for o in runner.report.outcomes] == ["failed", "failed"] and runner.report.finish() == 1


def test_many_failures_are_no_bad_luck(runner):
    count = run_all.MOST_DOUBTS + 1
    runner.take([failure(str(i)) for i in range(count)], lambda name: pytest.fail("tried again"))
    runner.try_again()
    assert runner.report.count("failed") == count


def test_a_run_that_breaks_down_is_a_failure(tmp_path):
    assert [o.state for o in report.read_junit("sample", tmp_path / "absent.xml", "said", 2)] == ["failed"]
    (tmp_path / "junit.xml").write_text('<testsuites><testcase classname="a" name="b"/></testsuites>')
    assert [o.state for o in report.read_junit("sample", tmp_path / "junit.xml", "said", 3)] == ["passed", "failed"]
