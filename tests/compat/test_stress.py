"""stress-ng for two seconds each: kernel interfaces under load, with a check of the results."""

import re

import pytest

pytestmark = pytest.mark.long
STRESSORS = {
    "cpu": ["--cpu", "2", "--cpu-method", "all"],
    "vm": ["--vm", "2", "--vm-bytes", "64M"],
    "hdd": ["--hdd", "2", "--hdd-bytes", "32M"],
    "pipe": ["--pipe", "2"],
    "fork": ["--fork", "2"],
}


@pytest.mark.parametrize("name", STRESSORS)
def test_stress(sandbox, system, name):
    system("stress-ng")
    outcome = sandbox.run("stress-ng", *STRESSORS[name], "--timeout", "2", "--verify", "--metrics-brief",
                          "--temp-path", "/workspace")
    text = outcome.stdout + outcome.stderr
    assert "successful run completed" in text, outcome.describe()
    assert "passed: 2" in text or re.search(rf"^.*metrc.*\b{name}\s+[1-9]\d*", text, re.M), text
    assert not re.search(r"\bfail(ed|ure)?\b(?!: 0)", text), text
