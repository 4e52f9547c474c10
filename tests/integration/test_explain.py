"""`belljar explain`: the plan in words, compared with golden files.

The plans of root and of a user differ, so there is one file for each. Lines about the host itself (cgroups) are left out; a
bare root (--system none) has no others. BELLJAR_GOLDEN=write rewrites the files."""
import json
import os
import pathlib
import re
import subprocess

import pytest

import harness

GOLDEN = pathlib.Path(__file__).parent / "golden"
CASES = {
    "bare": ["--system", "none", "--", "/tool"],
    "limits": ["--system", "none", "--profile", "tool", "--workdir", "/tmp/work", "--", "/tool"],
    "process": ["--level", "process", "--", "/bin/true"],
}


def explain(*arguments):
    return subprocess.run([harness.BELLJAR, "explain", *arguments], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})


def steps(*arguments):
    done = explain("--json", *arguments)
    assert done.returncode == 0, done.stderr
    # What depends on the host's cgroups is not the plan's: without them an rlimit and a janitor less or more.
    varying = ("cgroup", "RLIMIT_NPROC", "janitor", "instructions")
    return [f"{s['who']}: {s['what']} | {s['why']}" for s in json.loads(done.stdout)["steps"]
            if not any(word in s["what"] for word in varying)]


@pytest.mark.parametrize("name", CASES)
def test_golden(name):
    path = GOLDEN / f"{name}-{'root' if harness.IS_ROOT else 'user'}.txt"
    text = "\n".join(steps(*CASES[name])).replace(f"{os.geteuid()} {os.geteuid()} 1", "UID UID 1")
    text = text.replace(f"1000 {os.geteuid()} 1", "1000 UID 1").replace(f"uid={os.geteuid()},gid={os.geteuid()}", "uid=UID,gid=UID")
    text = re.sub(r"uid=19\d{8},gid=19\d{8}", "uid=GUEST,gid=GUEST", text) + "\n"
    if os.environ.get("BELLJAR_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()


def test_text_has_every_step_and_guard():
    done = explain("--", "/bin/true")
    assert done.returncode == 0
    plan = json.loads(explain("--json", "--", "/bin/true").stdout)
    for step in plan["steps"]:
        assert step["what"].split(", ")[0] in done.stdout
    for guard in plan["receipt"]["guards"]:
        assert guard["guard"] in done.stdout


def test_nothing_runs_and_mistakes_are_told():
    done = explain("--ro", "/no/such/place", "--", "/bin/true")
    assert done.returncode == 125 and "/no/such/place" in done.stderr
    done = explain("--net", "allow", "--", "/bin/true")
    assert done.returncode == 125 and "broker" in done.stderr
