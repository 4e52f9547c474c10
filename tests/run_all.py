#!/usr/bin/env python3
"""Runs all checks of the project; started by ./test, which see. Each phase is a function at the end of this file."""
import argparse
import contextlib
import ctypes
import dataclasses
import fnmatch
import glob
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

import harness

ROOT = pathlib.Path(__file__).resolve().parents[1]
# The suites that talk to a live kernel; they run once as root and once as an unprivileged user.
SUITES = ["integration", "containment", "faults", "compat"]
UNPRIVILEGED = pwd.getpwnam("nobody").pw_uid
CORES = len(os.sched_getaffinity(0))


@dataclasses.dataclass
class Outcome:
    phase: str
    name: str
    state: str  # "passed", "failed" or "skipped"
    detail: str = ""


class Report:
    """Collects outcomes, shows each failure and skip when it comes, and sums up."""

    def __init__(self):
        self.outcomes = []
        self.allowed = []
        for line in (ROOT / "tests" / "allowed_skips.txt").read_text().splitlines():
            if line and not line.startswith("#"):
                pattern, _, reason = line.partition(" # ")
                if not reason:
                    sys.exit(f"tests/allowed_skips.txt: no reason given in: {line}")
                self.allowed.append(pattern.strip())

    def add(self, phase, name, state, detail=""):
        if state == "skipped" and os.environ.get("CI") == "true":
            if not any(fnmatch.fnmatchcase(f"{phase} {name}", pattern) for pattern in self.allowed):
                state, detail = "failed", f"skipped, which tests/allowed_skips.txt does not allow: {detail}"
        self.outcomes.append(Outcome(phase, name, state, detail))
        if state == "failed":
            print(f"\nFAILED  {phase}: {name}\n{indent(detail)}", flush=True)
        elif state == "skipped":
            print(f"SKIPPED {phase}: {name}: {detail.strip()}", flush=True)

    def count(self, state):
        return sum(1 for outcome in self.outcomes if outcome.state == state)

    def finish(self):
        failed = [o for o in self.outcomes if o.state == "failed"]
        if failed:
            print("\nFailures:")
            for outcome in failed:
                print(f"  {outcome.phase}: {outcome.name}")
        print(f"{self.count('passed')} passed, {len(failed)} failed, {self.count('skipped')} skipped", flush=True)
        return 1 if failed or not self.count("passed") else 0


def indent(text, limit=120):
    lines = text.strip().splitlines()
    if len(lines) > limit:
        lines = lines[: limit // 2] + [f"… {len(lines) - limit} lines …"] + lines[-limit // 2:]
    return "\n".join("    " + line for line in lines)


class Children:
    """Starts processes, and adopts what they leave behind.

    As "child subreaper" this process inherits every orphan below it, so that a sandbox which outlives its test is found
    by parentage and not by name. Orphans that end by themselves are reaped at once, as pid 1 would do it.
    """

    def __init__(self):
        pr_set_child_subreaper = 36
        ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)
        self.own = set()
        self.starting = False
        signal.signal(signal.SIGCHLD, lambda *_: self.reap())
        # Started in the background, by nohup or by a service, these may be ignored; what is tested here must not be.
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
            if signal.getsignal(number) == signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)

    def reap(self):
        while not self.starting:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None or ended.si_pid in self.own:
                return
            os.waitpid(ended.si_pid, 0)

    def run(self, argv, **options):
        """Returns (status, merged output). The only way to start a process here: reap() would steal any other's status."""
        self.starting = True
        process = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, **options)
        self.own.add(process.pid)
        self.starting = False
        text = process.communicate()[0].decode(errors="replace")
        self.own.discard(process.pid)
        self.reap()
        return process.returncode, text

    def orphans(self):
        """Live processes that were left to us."""
        found = {}
        for stat in glob.glob("/proc/[0-9]*/stat"):
            with contextlib.suppress(OSError):
                pid, name, state, parent = re.match(r"(\d+) \((.*)\) (\S) (\d+)", pathlib.Path(stat).read_text(), re.S).groups()
                if int(parent) == os.getpid() and int(pid) not in self.own and state != "Z":
                    found[f"process {pid} ({name})"] = int(pid)
        return found


def in_use(path):
    """Whether the process that a name such as belljar-1234-56ab carries is alive: then it is somebody's run, no leak."""
    owner = re.search(r"belljar\D*-(\d+)-", os.path.basename(path))
    return owner is not None and os.path.exists(f"/proc/{owner[1]}")


class LeakCheck:
    """Compares what exists before and after: orphans, mounts, control groups, temporary files."""

    def __init__(self, children):
        self.children = children
        self.before = self.look()

    def look(self):
        seen = set(self.children.orphans())
        seen |= {"mount " + line.split()[4] for line in open("/proc/self/mountinfo", encoding="utf-8")}
        seen |= {"control group " + path for own in harness.own_cgroups() for path in glob.glob(f"{own}/**/belljar*", recursive=True)
                 if os.path.isdir(path) and not in_use(path)}
        seen |= {"file " + path for where in ("/tmp", "/var/tmp", "/dev/shm", "/run") for path in glob.glob(f"{where}/belljar*")
                 if not in_use(path)}
        return seen

    def leaks(self):
        """What is there now and was not before; what goes away within five seconds is no leak."""
        deadline = time.monotonic() + 5
        while True:
            new = self.look() - self.before
            if not new or time.monotonic() > deadline:
                self.before |= new  # Reported once.
                for pid in self.children.orphans().values():
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                return sorted(new)
            time.sleep(0.1)


class Run:
    """One invocation of ./test: what to run, where things are, and the phases."""

    def __init__(self, long, pattern):
        self.long = long
        self.filter = pattern
        self.report = Report()
        self.children = Children()
        self.leaks = LeakCheck(self.children)
        self.build_dir = ROOT / "build" / "test"
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="bj-test-"))
        self.scratch.chmod(0o755)
        self.whole_phase = False

    # -- shared steps ------------------------------------------------------------------------------------------------

    def build(self, preset):
        """Builds a preset in build/PRESET; False, with a failure noted, when that does not work."""
        script = f'root=$1; . "$root/tools/bootstrap.sh"; mkdir -p "$3"; build "$2" "$3"'
        status, text = self.children.run(["sh", "-c", script, "sh", ROOT, preset, ROOT / "build" / preset])
        if status != 0:
            self.report.add("build", preset, "failed", text)
        return status == 0

    def check(self, phase, name, argv, **options):
        """One command that is one test: status 0 passed, 77 skipped."""
        status, text = self.children.run(argv, **options)
        self.report.add(phase, name, {0: "passed", 77: "skipped"}.get(status, "failed"), text)

    def wants(self, name):
        return self.whole_phase or not self.filter or self.filter in name

    def junit(self, phase, path, text, status):
        """Adds the tests of a JUnit file; a run that broke down before it wrote one is a failure too."""
        try:
            tree = xml.etree.ElementTree.parse(path)
        except (OSError, xml.etree.ElementTree.ParseError):
            self.report.add(phase, "the run itself", "failed", f"exit status {status}\n{text}")
            return
        failures = 0
        for case in tree.iter("testcase"):
            name = "::".join(filter(None, [case.get("classname") if phase.startswith("suites") else "", case.get("name")]))
            skipped = case.find("skipped")
            broken = [e for e in (case.find("failure"), case.find("error")) if e is not None]
            if broken or case.get("status") == "fail":
                failures += 1
                output = case.findtext("system-out") or ""
                self.report.add(phase, name, "failed", "\n".join((e.text or e.get("message") or "") for e in broken) + output)
            elif skipped is not None or case.get("status") in ("notrun", "disabled"):
                self.report.add(phase, name, "skipped", (skipped is not None and skipped.get("message")) or "not run")
            else:
                self.report.add(phase, name, "passed")
        # pytest: 5 means that the filter left no test. Anything else that no test accounts for must not pass silently.
        if status not in (0, 5) and not failures:
            self.report.add(phase, "the run itself", "failed", f"exit status {status}\n{text}")

    def ctest(self, phase, preset):
        out = self.scratch / f"{phase.replace(' ', '-')}.xml"
        argv = ["ctest", "--test-dir", ROOT / "build" / preset, "--output-junit", out, "--output-on-failure", "-j", CORES,
                "--no-tests=ignore"]
        if self.filter and not self.whole_phase:
            argv += ["-R", re.escape(self.filter)]
        env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1",
               "UBSAN_OPTIONS": "print_stacktrace=1", "TSAN_OPTIONS": "halt_on_error=1"}
        status, text = self.children.run(argv, env=env)
        self.junit(phase, out, text, status)

    def pytest(self, phase, directories, root=ROOT, prefix=(), env=None):
        present = [d for d in directories if any((root / "tests" / d).glob("test_*.py"))]
        if not present:
            return
        out_dir = self.scratch / phase.replace(" ", "-")
        out_dir.mkdir()
        out_dir.chmod(0o777)
        argv = [*prefix, "/usr/bin/python3", "-m", "pytest", "-p", "no:cacheprovider", "-q", "-ra", "--tb=short",
                f"--junitxml={out_dir}/junit.xml", f"--basetemp={out_dir}/tmp", f"--rootdir={root}",
                *[root / "tests" / d for d in present]]
        if self.filter and not self.whole_phase:
            argv += ["-k", self.filter]
        status, text = self.children.run(argv, cwd=root, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **(env or {})})
        self.junit(phase, out_dir / "junit.xml", text, status)

    # -- phases ------------------------------------------------------------------------------------------------------

    def phase_lint(self):
        python = "/usr/bin/python3"
        sources = sorted(str(p) for d in ("include", "src", "tests", "tools", "cmake") for p in (ROOT / d).glob("**/*")
                         if p.suffix in (".h", ".cc", ".c"))
        lints = {
            "lint format": ["clang-format-19", "--dry-run", "-Werror", *sources],
            "lint includes": [python, ROOT / "tools/lint_includes.py"],
            "lint symbols": [python, ROOT / "tools/lint_symbols.py", self.build_dir / "src/jail/libbelljar_jail.a"],
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
        argv = ["/usr/bin/python3", ROOT / "tools/lint_tidy.py", self.build_dir] + (["--deep"] if self.long else [])
        if self.wants("tidy"):
            self.check("tidy", "clang-tidy", argv, cwd=ROOT)

    def phase_unit(self):
        self.ctest("unit", "test")

    def phase_asan(self):
        if self.build("asan"):
            self.ctest("asan", "asan")

    def phase_tsan(self):
        if self.long and self.build("tsan"):
            self.ctest("tsan", "tsan")

    def suite_env(self, program, guests):
        return {"BELLJAR": str(program), "BELLJAR_GUESTS": str(guests), "BELLJAR_BUILD": str(self.build_dir),
                "BELLJAR_LONG": "1" if self.long else ""}

    def phase_root(self):
        prefix = []
        env = self.suite_env(self.build_dir / "src/cli/belljar", self.build_dir / "tests/guests")
        if os.geteuid() != 0:
            if not shutil.which("sudo") or self.children.run(["sudo", "-n", "true"])[0] != 0:
                self.report.add("suites as root", "all of " + ", ".join(SUITES), "skipped",
                                "not started as root, and sudo -n does not work; run: sudo ./test")
                return
            prefix = ["sudo", "-n", "env", "PYTHONDONTWRITEBYTECODE=1", *[f"{k}={v}" for k, v in env.items()]]
        self.pytest("suites as root", SUITES, prefix=prefix, env=env)
        if prefix:  # What the tests wrote as root must not stop this user from removing the scratch directory.
            self.children.run(["sudo", "-n", "chown", "-R", str(os.geteuid()), self.scratch])

    def phase_user(self):
        """Runs on a copy when started by root, since the checkout may lie where nobody else may look."""
        if os.geteuid() != 0:
            env = self.suite_env(self.build_dir / "src/cli/belljar", self.build_dir / "tests/guests")
            self.pytest("suites as user", SUITES, env=env)
            return
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
        self.pytest("suites as user", SUITES, root=stage, prefix=prefix, env=env)

    def phase_fuzz(self):
        script = ROOT / "tests/fuzz/run"
        if script.exists() and self.wants("fuzz"):
            self.check("fuzz", "readers", [script, "300" if self.long else "20"], cwd=ROOT)

    def phase_install(self):
        self.pytest("install", ["install"])

    def phase_vm(self):
        """Other kernels and cgroup layouts; each test boots a machine."""
        if self.long:
            self.pytest("vm", ["vm"], env=self.suite_env(self.build_dir / "src/cli/belljar", self.build_dir / "tests/guests"))

    PHASES = ["lint", "unit", "root", "user", "install", "asan", "tsan", "fuzz", "tidy", "vm"]

    def run(self):
        names = [name for name in self.PHASES if name == self.filter] or self.PHASES
        self.whole_phase = names != self.PHASES
        started = time.monotonic()
        if names != ["asan"] and names != ["tsan"] and not self.build("test"):
            return self.report.finish()
        self.clock("build", started)
        for name in names:
            if sys.stderr.isatty():
                print(f"… {name}\r", end="", file=sys.stderr, flush=True)
            begun, known = time.monotonic(), len(self.report.outcomes)
            getattr(self, f"phase_{name}")()
            if leaks := self.leaks.leaks():
                self.report.add(name, "leaks", "failed", "\n".join(["left behind, 5 s after the end:", *leaks]))
            if len(self.report.outcomes) > known:
                self.clock(name, begun, self.report.outcomes[known:])
        if not any(o.name == "leaks" for o in self.report.outcomes):
            self.report.add("all", "nothing is left behind", "passed")
        print(f"total: {time.monotonic() - started:.0f} s")
        return self.report.finish()

    def clock(self, name, begun, outcomes=()):
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
        run.children.run(["rm", "-rf", run.scratch])
    sys.exit(status)


if __name__ == "__main__":
    main()
