"""What came of the checks: collected, shown when it comes, and summed up at the end."""

import dataclasses
import fnmatch
import os
import pathlib
import sys
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[1]


@dataclasses.dataclass
class Outcome:
    phase: str
    name: str
    state: str  # "passed", "failed" or "skipped"
    detail: str = ""
    id: str = ""  # How its runner calls it; empty where it can't be run alone.
    final: bool = True  # A failure that no second try can mend.


class Report:
    def __init__(self):
        self.outcomes = []
        self.flaky = []
        self.allowed = []
        for line in (ROOT / "tests" / "allowed_skips.txt").read_text().splitlines():
            if line and not line.startswith("#"):
                pattern, _, reason = line.partition(" # ")
                if not reason:
                    sys.exit(f"tests/allowed_skips.txt: no reason given in: {line}")
                self.allowed.append(pattern.strip())

    def add(self, outcome):
        if outcome.state == "skipped" and os.environ.get("CI") == "true":
            if not any(fnmatch.fnmatchcase(f"{outcome.phase} {outcome.name}", pattern) for pattern in self.allowed):
                outcome.state = "failed"
                outcome.detail = f"skipped, which tests/allowed_skips.txt does not allow: {outcome.detail}"
        self.outcomes.append(outcome)
        if outcome.state == "failed":
            print(f"\nFAILED  {outcome.phase}: {outcome.name}\n{indent(outcome.detail)}", flush=True)
        elif outcome.state == "skipped":
            print(f"SKIPPED {outcome.phase}: {outcome.name}: {outcome.detail.strip()}", flush=True)

    def add_flaky(self, first):
        """A test that failed and then passed, alone: it counts as passed, and is not forgotten."""
        self.outcomes.append(Outcome(first.phase, first.name, "passed"))
        self.flaky.append(first)
        print(f"FLAKY   {first.phase}: {first.name}: failed once, passed alone", flush=True)
        (ROOT / "build").mkdir(exist_ok=True)
        with open(ROOT / "build" / "flaky.log", "a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%F %T')} {first.phase}: {first.name}\n{indent(first.detail)}\n\n")

    def count(self, state):
        return sum(1 for outcome in self.outcomes if outcome.state == state)

    def finish(self):
        failed = [o for o in self.outcomes if o.state == "failed"]
        for title, which in (("Failures:", failed), ("Flaky, see build/flaky.log:", self.flaky)):
            if which:
                print("\n" + title)
                for outcome in which:
                    print(f"  {outcome.phase}: {outcome.name}")
        print(f"{self.count('passed')} passed, {len(failed)} failed, {self.count('skipped')} skipped", flush=True)
        return 1 if failed or not self.count("passed") else 0


def indent(text, limit=120):
    lines = text.strip().splitlines()
    if len(lines) > limit:
        lines = lines[: limit // 2] + [f"… {len(lines) - limit} lines …"] + lines[-limit // 2:]
    return "\n".join("    " + line for line in lines)


def read_junit(phase, path, text, status):
    """The outcomes in a JUnit file of pytest or ctest; a run that broke down before it wrote one is a failure too."""
    broke = Outcome(phase, "the run itself", "failed", f"exit status {status}\n{text}")
    try:
        tree = xml.etree.ElementTree.parse(path)
    except (OSError, xml.etree.ElementTree.ParseError):
        return [broke]
    outcomes = [_outcome(phase, case) for case in tree.iter("testcase")]
    # pytest: 5 means that the filter left no test. Anything else that no test accounts for must not pass silently.
    if status not in (0, 5) and not any(o.state == "failed" for o in outcomes):
        outcomes.append(broke)
    return outcomes


def _outcome(phase, case):
    properties = {p.get("name"): p.get("value") for p in case.iter("property")}
    by_pytest = case.get("status") is None
    name = "::".join(filter(None, [case.get("classname") if by_pytest else "", case.get("name")]))
    id = properties.get("id", "") if by_pytest else case.get("name")
    outcome = Outcome(phase, name, "passed", id=id, final="final" in properties)
    skipped = case.find("skipped")
    broken = [e for e in (case.find("failure"), case.find("error")) if e is not None]
    if broken or case.get("status") == "fail":
        outcome.state = "failed"
        outcome.detail = "\n".join((e.text or e.get("message") or "") for e in broken) + (case.findtext("system-out") or "")
    elif skipped is not None or case.get("status") in ("notrun", "disabled"):
        outcome.state = "skipped"
        outcome.detail = (skipped is not None and skipped.get("message")) or "not run"
    return outcome
