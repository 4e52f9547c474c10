#!/usr/bin/env python3
"""Runs the checks of the project; started by ./test, which see. Each phase is a function below, its name behind `phase_`."""
import argparse
import os
import pathlib
import pwd
import re
import shutil
import sys
import tempfile
import time

from children import Children, LeakCheck
from report import Outcome, Report, read_junit

ROOT = pathlib.Path(__file__).resolve().parents[1]
# The suites that talk to a live kernel; they run once as root and once as an unprivileged user.
SUITES = ["integration", "containment", "faults", "compat"]
UNPRIVILEGED = pwd.getpwnam("nobody").pw_uid
CORES = len(os.sched_getaffinity(0))

GATE = ["lint", "unit", "root", "user"]
LONG = [*GATE, "install", "asan", "tsan", "fuzz", "tidy", "vm"]

TRIES = 2  # More for a test that failed, each alone.
# More failures than this are no bad luck; then none is tried again.
MOST_DOUBTS = 12
# Unit tests of what contains a guest: judged once, like all of tests/containment.
FINAL_UNITS = ("seccomp.", "jail.", "plan.", "prove.")


class Run:
    """One invocation of ./test: what to run, where things are, and the phases."""

    def __init__(self, long, pattern):
        self.long = long
        self.filter = pattern
        # A phase can be asked for by its name, whatever tier it is of.
        self.names = [pattern] if pattern in LONG else LONG if long else GATE
        self.whole_phase = pattern in LONG
        self.report = Report()
        self.children = Children()
        self.leaks = LeakCheck(self.children)
        self.build_dir = ROOT / "build" / "test"
        self.doubts = []
        self.end_user = None
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="bj-test-"))
        self.scratch.chmod(0o755)

    # -- shared steps ------------------------------------------------------------------------------------------------

    def build(self, preset):
        """Builds a preset in build/PRESET; False, with a failure noted, when that does not work."""
        script = 'root=$1; . "$root/tools/bootstrap.sh"; mkdir -p "$3"; build "$2" "$3"'
        status, text = self.children.run(["sh", "-c", script, "sh", ROOT, preset, ROOT / "build" / preset])
        if status != 0:
            self.report.add(Outcome("build", preset, "failed", text))
        return status == 0

    def check(self, phase, name, argv, **options):
        """One command that is one test: status 0 passed, 77 skipped."""
        status, text = self.children.run(argv, **options)
        self.report.add(Outcome(phase, name, {0: "passed", 77: "skipped"}.get(status, "failed"), text))

    def wants(self, name):
        return self.whole_phase or not self.filter or self.filter in name

    def scratch_for(self, phase):
        directory = pathlib.Path(tempfile.mkdtemp(prefix=phase.replace(" ", "-") + "-", dir=self.scratch))
        directory.chmod(0o777)
        return directory

    def take(self, outcomes, again):
        """Reports them; a failure that is not final waits for try_again(). `again` runs one test alone: whether it passed."""
        for outcome in outcomes:
            if outcome.state == "failed" and outcome.id and not outcome.final:
                self.doubts.append((outcome, again))
            else:
                self.report.add(outcome)

    def try_again(self):
        """Nothing else runs now: what fails once more does not fail for want of a processor."""
        doubts, self.doubts = self.doubts, []
        hopeless = len(doubts) > MOST_DOUBTS
        for outcome, again in doubts:
            if not hopeless and any(again(outcome.id) for _ in range(TRIES)):
                self.report.add_flaky(outcome)
            else:
                self.report.add(outcome)

    def ctest(self, phase, preset):
        env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1",
               "UBSAN_OPTIONS": "print_stacktrace=1", "TSAN_OPTIONS": "halt_on_error=1"}

        def run(*more):
            out = self.scratch_for(phase) / "junit.xml"
            status, text = self.children.run(["ctest", "--test-dir", ROOT / "build" / preset, "--output-junit", out,
                                              "--output-on-failure", "--no-tests=ignore", *more], env=env)
            return read_junit(phase, out, text, status)

        wanted = ["-R", re.escape(self.filter)] if self.filter and not self.whole_phase else []
        outcomes = run("-j", CORES, *wanted)
        for outcome in outcomes:
            outcome.final = outcome.final or phase != "unit" or outcome.name.startswith(FINAL_UNITS)
        self.take(outcomes, lambda name: [o.state for o in run("-R", f"^{re.escape(name)}$")] == ["passed"])

    def pytest(self, *words, **options):
        self.begin_pytest(*words, **options)()

    def begin_pytest(self, phase, directories, root=ROOT, prefix=(), env=None):
        """Starts it, and gives what waits for its end and takes its outcomes."""
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "BELLJAR_LONG": "1" if self.long else "", **(env or {})}

        def begin(*which):
            place = self.scratch_for(phase)
            argv = [*prefix, "/usr/bin/python3", "-m", "pytest", "-p", "no:cacheprovider", "-q", "-ra", "--tb=short",
                    f"--junitxml={place}/junit.xml", f"--basetemp={place}/tmp", f"--rootdir={root}", *which]
            with open(place / "said.txt", "wb") as output:  # A pipe would fill up while nobody reads it yet.
                process = self.children.begin(argv, output=output, cwd=root, env=env)

            def end():
                status, _ = self.children.finish(process)
                return read_junit(phase, place / "junit.xml", (place / "said.txt").read_text(errors="replace"), status)

            return end

        present = [root / "tests" / d for d in directories if any((root / "tests" / d).glob("test_*.py"))]
        end_all = begin(*present, *(["-k", self.filter] if self.filter and not self.whole_phase else []))
        return lambda: self.take(end_all(), lambda id: [o.state for o in begin(f"{root}/{id}")()] == ["passed"])

    # -- phases ------------------------------------------------------------------------------------------------------

    def phase_lint(self):
        python = "/usr/bin/python3"
        sources = sorted(str(p) for d in ("include", "src", "tests", "tools", "cmake") for p in (ROOT / d).glob("**/*")
                         if p.suffix in (".h", ".cc", ".c"))
        lints = {
            "lint format": ["clang-format-19", "--dry-run", "-Werror", *sources],
            "lint includes": [python, ROOT / "tools/lint_includes.py"],
            "lint symbols": [python, ROOT / "tools/lint_symbols.py", self.build_dir / "src/jail/libbelljar_jail.a",
                             *(self.build_dir / "src/launcher/CMakeFiles/belljar-launcher.dir").glob("*.o")],
            "lint hardening": [python, ROOT / "tools/lint_hardening.py", self.build_dir / "src/cli/belljar",
                               self.build_dir / "libbelljar.a"],
            "lint shell": ["sh", "-c", 'for f; do sh -n "$f" || exit 1; done', "sh", ROOT / "belljar",
                           ROOT / "tools/bootstrap.sh"],
        }
        for name, argv in lints.items():
            if self.wants(name):
                self.check("lint", name, argv, cwd=ROOT)
        self.pytest("lints of lints", ["lint"])

    def phase_tidy(self):
        if self.wants("tidy"):
            self.check("tidy", "clang-tidy", ["/usr/bin/python3", ROOT / "tools/lint_tidy.py", self.build_dir, "--deep"], cwd=ROOT)

    def phase_unit(self):
        self.ctest("unit", "test")
        if os.geteuid() == 0 and self.wants("backend as user"):
            self.backend_as_user()

    def backend_as_user(self):
        """Engines, launchers and live sandboxes without privileges; all but a test that reads the checkout."""
        place = self.scratch_for("units")
        shutil.copy2(self.build_dir / "src/backend/backend_test", place)
        shutil.copy2(self.build_dir / "tests/backends_test", place)
        prefix = ["setpriv", f"--reuid={UNPRIVILEGED}", f"--regid={UNPRIVILEGED}", "--clear-groups", "--"]
        self.check("unit", "backend as user", [*prefix, place / "backend_test", "--gtest_brief=1",
                                               "--gtest_filter=-*EndsWithAnOwnerThatCanNotEnd"], cwd=place)
        self.check("unit", "backends as user", [*prefix, place / "backends_test", "--gtest_brief=1"], cwd=place)

    def phase_asan(self):
        if self.build("asan"):
            self.ctest("asan", "asan")

    def phase_tsan(self):
        if self.build("tsan"):
            self.ctest("tsan", "tsan")

    def suite_env(self, program, guests):
        return {"BELLJAR": str(program), "BELLJAR_GUESTS": str(guests), "BELLJAR_BUILD": str(self.build_dir),
                "BELLJAR_LONG": "1" if self.long else ""}

    def phase_root(self):
        """With the user's suites beside it: both wait more than they compute, and see nothing of each other."""
        end_root = self.begin_root()
        self.end_user = self.begin_user() if "user" in self.names else None
        end_root()

    def phase_user(self):
        (self.end_user or self.begin_user())()
        self.end_user = None

    def begin_root(self):
        prefix = []
        env = self.suite_env(self.build_dir / "src/cli/belljar", self.build_dir / "tests/guests")
        if os.geteuid() != 0:
            if not shutil.which("sudo") or self.children.run(["sudo", "-n", "true"])[0] != 0:
                self.report.add(Outcome("suites as root", "all of " + ", ".join(SUITES), "skipped",
                                        "not started as root, and sudo -n does not work; run: sudo ./test"))
                return lambda: None
            prefix = ["sudo", "-n", "env", "PYTHONDONTWRITEBYTECODE=1", *[f"{k}={v}" for k, v in env.items()]]
        return self.begin_pytest("suites as root", SUITES, prefix=prefix, env=env)

    def begin_user(self):
        """Runs on a copy when started by root, since the checkout may lie where nobody else may look."""
        if os.geteuid() != 0:
            env = self.suite_env(self.build_dir / "src/cli/belljar", self.build_dir / "tests/guests")
            return self.begin_pytest("suites as user", SUITES, env=env)
        stage = self.scratch / "stage"
        for name in ("tests", "profiles", "docs", "bench", "tools", "include"):
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, stage / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        for path in ROOT.glob("*.md"):
            shutil.copy2(path, stage)
        shutil.copy2(self.build_dir / "src/cli/belljar", stage / "program")
        shutil.copy2(self.build_dir / "src/cli/belljar-corpus", stage / "belljar-corpus")  # The attacks of `prove`.
        if (self.build_dir / "tests/guests").is_dir():
            shutil.copytree(self.build_dir / "tests/guests", stage / "guests", symlinks=True)
        (stage / "home").mkdir()
        self.children.run(["chmod", "-R", "a+rX", stage])
        self.children.run(["chown", "-R", f"{UNPRIVILEGED}:{UNPRIVILEGED}", stage])
        env = {**self.suite_env(stage / "program", stage / "guests"), "HOME": str(stage / "home"), "USER": "nobody",
               "LOGNAME": "nobody"}
        prefix = ["setpriv", f"--reuid={UNPRIVILEGED}", f"--regid={UNPRIVILEGED}", "--clear-groups", "--"]
        return self.begin_pytest("suites as user", SUITES, root=stage, prefix=prefix, env=env)

    def phase_fuzz(self):
        script = ROOT / "tests/fuzz/run"
        if script.exists() and self.wants("fuzz"):
            self.check("fuzz", "readers", [script, "300" if self.long else "20"], cwd=ROOT)

    def phase_install(self):
        self.pytest("install", ["install"])

    def phase_vm(self):
        """Other kernels and cgroup layouts; each test boots a machine."""
        self.pytest("vm", ["vm"], env=self.suite_env(self.build_dir / "src/cli/belljar", self.build_dir / "tests/guests"))

    def run(self):
        started = time.monotonic()
        if self.names not in (["asan"], ["tsan"]) and not self.build("test"):
            return self.report.finish()
        self.clock("build", started)
        for name in self.names:
            if sys.stderr.isatty():
                print(f"… {name}\r", end="", file=sys.stderr, flush=True)
            begun, known = time.monotonic(), len(self.report.outcomes)
            getattr(self, f"phase_{name}")()
            if self.end_user is None:  # Else the other half still runs.
                self.try_again()
                if leaks := self.leaks.leaks():
                    self.report.add(Outcome(name, "leaks", "failed", "\n".join(["left behind:", *leaks])))
            if len(self.report.outcomes) > known:
                self.clock(name, begun, self.report.outcomes[known:])
        if not any(o.name == "leaks" for o in self.report.outcomes):
            self.report.add(Outcome("all", "nothing is left behind", "passed"))
        print(f"total: {time.monotonic() - started:.0f} s")
        return self.report.finish()

    def remove_scratch(self):
        as_root = ["sudo", "-n"] if os.geteuid() != 0 and "root" in self.names and shutil.which("sudo") else []
        if self.children.run([*as_root, "rm", "-rf", self.scratch])[0] != 0:
            self.children.run(["rm", "-rf", self.scratch])

    @staticmethod
    def clock(name, begun, outcomes=()):
        states = [o.state for o in outcomes]
        counts = ", ".join(f"{states.count(s)} {s}" for s in ("passed", "failed", "skipped") if s in states)
        print(f"[{time.monotonic() - begun:4.0f} s] {name}{': ' + counts if counts else ''}", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="./test")
    parser.add_argument("--long", action="store_true", help="also what takes long")
    parser.add_argument("filter", nargs="?", default="", help="a phase, or part of a test's name")
    options = parser.parse_args()
    run = Run(options.long, options.filter)
    try:
        status = run.run()
    finally:
        run.remove_scratch()
    sys.exit(status)


if __name__ == "__main__":
    main()
