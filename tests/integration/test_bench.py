"""bench/run works: it races, says who did not take part and why, and writes reports that can be read. No time is judged here;
a machine that runs tests is too busy for that."""

import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import pytest

import harness

pytestmark = pytest.mark.long
RUN = harness.ROOT / "bench/run"
TINY = ["--runs", "3", "--seconds", "0.3", "--live", "2", "--jobs", "2"]


def bench(*arguments, timeout=240):
    return subprocess.run([sys.executable, RUN, *arguments], capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, env={**os.environ, "BELLJAR": harness.BELLJAR})


def raced(tmp_path, *arguments):
    """A tiny race; returns its report and what it printed."""
    done = bench(*TINY, *arguments, "--json", tmp_path / "r.json", "--svg", tmp_path / "r.svg", "--markdown", tmp_path / "r.md")
    assert done.returncode == 0, done.stderr
    return json.loads((tmp_path / "r.json").read_text()), done


def rows_of(report, work):
    identity = "root" if harness.IS_ROOT else "user"
    return report["identities"][identity]["rows"][work]


def test_a_race_has_every_field(tmp_path):
    report, done = raced(tmp_path, "--only", "start,throughput,posix_spawn,clone,belljar,library,library-warm")
    assert {"date", "version", "machine", "quick", "no_instructions", "identities"} <= report.keys()
    rows = rows_of(report, "start")
    for name in ("posix_spawn", "clone", "belljar"):
        assert rows[name]["runs"] == 3 and 0 < rows[name]["p50_ms"] <= rows[name]["p90_ms"]
    assert rows["clone"]["base"] == "posix_spawn"
    assert rows["clone"]["ratio"] == pytest.approx(rows["clone"]["p50_ms"] / rows["posix_spawn"]["p50_ms"])
    loaded = rows_of(report, "throughput")["belljar"]
    assert loaded["runs"] > 0 and loaded["per_second"] > 0 and loaded["p99_over_p50"] >= 1
    assert "p50 ms" in done.stdout and "goals" in done.stdout


def test_goals_are_judged_or_said_to_be_not_measured(tmp_path):
    report, _ = raced(tmp_path, "--only", "start,belljar,posix_spawn")
    judged = next(iter(report["identities"].values()))["goals"]
    assert len(judged) == 10
    for goal in judged:
        assert goal["state"] in ("met", "missed", "not measured")
        assert (goal["state"] == "not measured") == (goal["measured"] is None)


def test_chart_and_tables(tmp_path):
    raced(tmp_path, "--only", "start,belljar,posix_spawn")
    tree = xml.etree.ElementTree.parse(tmp_path / "r.svg").getroot()
    assert tree.tag == "{http://www.w3.org/2000/svg}svg"
    words = [element.text for element in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert "belljar" in words and "posix_spawn" in words
    assert "prefers-color-scheme: dark" in (tmp_path / "r.svg").read_text()
    assert re.search(r"^\| belljar \| [0-9.]+ \|", (tmp_path / "r.md").read_text(), re.M)


@pytest.mark.parametrize("work", ["python", "stdout", "syscalls"])
def test_works(tmp_path, work):
    report, _ = raced(tmp_path, "--only", f"{work},posix_spawn,belljar")
    assert rows_of(report, work)["belljar"]["p50_ms"] > 0


def test_sandboxes_alive(tmp_path):
    report, _ = raced(tmp_path, "--only", "live,belljar")
    row = rows_of(report, "live")["belljar"]
    if harness.IS_ROOT:
        assert row["runs"] == 2 and row["pss_kb"] > 0 and row["processes_each"] >= 2
    else:  # A sandbox's processes may not be open to the user who made it; then it has to be said.
        assert row.get("pss_kb", 0) > 0 or "can't be looked at" in row["skipped"]


def test_who_is_absent_is_named_with_the_reason(tmp_path):
    """A program without its library beside it: the library's rows stay in the table and say why they are empty."""
    program = tmp_path / "belljar"
    shutil.copy2(harness.BELLJAR, program)
    env = {key: value for key, value in os.environ.items() if key != "BELLJAR_BUILD"} | {"BELLJAR": str(program)}
    done = subprocess.run([sys.executable, RUN, *TINY, "--only", "start,posix_spawn,library", "--json", tmp_path / "r.json"],
                          text=True, capture_output=True, timeout=240, env=env)
    assert done.returncode == 0, done.stderr
    rows = rows_of(json.loads((tmp_path / "r.json").read_text()), "start")
    assert "no libbelljar.a" in rows["library"]["skipped"] and "p50_ms" in rows["posix_spawn"]
    assert re.search(r"library +skipped: no libbelljar.a", done.stdout) and "library is skipped" in done.stderr


def test_a_failing_belljar_is_no_fast_one(tmp_path):
    """A contender that does not do the work has no time at all."""
    broken = tmp_path / "belljar"
    broken.write_text('#!/bin/sh\n[ "$1" = --version ] && exec echo broken\necho cannot >&2\nexit 3\n')
    broken.chmod(0o755)
    tmp_path.chmod(0o755)
    done = subprocess.run([sys.executable, RUN, *TINY, "--only", "start,belljar", "--json", tmp_path / "r.json"], text=True,
                          capture_output=True, timeout=240, env={**os.environ, "BELLJAR": str(broken)})
    assert done.returncode == 0, done.stderr
    row = rows_of(json.loads((tmp_path / "r.json").read_text()), "start")["belljar"]
    assert "cannot" in row["skipped"] and "p50_ms" not in row
    assert "belljar is skipped" in done.stderr


def test_unknown_names_are_refused():
    done = bench("--only", "start,bubblewrop")
    assert done.returncode != 0 and "bubblewrop" in done.stderr and "bwrap" in done.stderr


@pytest.mark.parametrize("leak", [False, True])
def test_a_soak_fails_only_when_something_grows(leak):
    done = bench("--soak", "0.1", "--every", "0.4", "--jobs", "2", *(["--leak"] if leak else []))
    if "no libbelljar.a" in done.stderr:
        pytest.skip("no libbelljar.a that this user can read")
    assert ("fds" in done.stderr) == leak, done.stdout + done.stderr
    assert leak == (done.returncode == 1), done.stdout + done.stderr


def test_nothing_is_left_even_after_a_signal():
    """Its directory carries its pid, so another bench on this machine is none of our business."""
    process = subprocess.Popen([sys.executable, RUN, "--only", "throughput,posix_spawn", "--seconds", "100"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env={**os.environ, "BELLJAR": harness.BELLJAR})
    def mine():
        return [name for name in os.listdir("/var/tmp") if name.startswith(f"bj-bench-{process.pid}-")]
    try:
        assert harness.wait_until(lambda: harness.processes_with(f"bj-bench-{process.pid}-")), "no racer came up"
        process.terminate()
        process.wait(harness.PATIENCE)
    finally:
        process.kill()
        process.wait()
    assert not mine() and not harness.processes_with(f"bj-bench-{process.pid}-")
