"""Who is raced: ways to run a command that need no preparation. Those with images and daemons are in containers.py."""

import json
import os
import re
import shlex
import shutil
import subprocess

from .stage import ROOT, Skip

EVERYTHING = ("start", "throughput", "python", "stdout", "syscalls", "build", "live")
STARTS = ("start", "throughput")


class Contender:
    """One way to run a command. `wrap` makes a command line of a peer's; our library has racer options instead."""

    name = ""
    what = ""
    works = EVERYTHING
    base = "posix_spawn"  # what its times are divided by
    ours = False
    library = False
    idle = False  # whether its sandboxes are alive without a guest
    live_share = 1.0  # the heavy ones are asked for fewer sandboxes at once
    scratch = "/tmp"  # a directory inside that is in memory and may hold programs
    guest_sees_host = True  # whether files of the stage have their own path inside, or are below /bench

    def __init__(self, identity):
        self.identity, self.stage = identity, identity.stage

    def prepare(self):
        """Raises Skip when it can't race here."""

    def options(self, work):
        return ["--mode", "spawn", "--out", work.out]

    def wrap(self, argv, work):
        return argv

    def helpers(self):
        """Pids that belong to it and are not below its racer."""
        return []

    def close(self):
        pass

    def need(self, program, package=None):
        path = shutil.which(program, path=self.identity.env["PATH"])
        if path is None:
            raise Skip(f"{program} is not installed; bench/run --install, or: apt-get install {package or program}")
        return path


class PosixSpawn(Contender):
    name, what, base = "posix_spawn", "no sandbox at all: posix_spawn and wait", None
    works = tuple(work for work in EVERYTHING if work != "live")
    scratch = "/dev/shm"


class Pipe(PosixSpawn):
    name, what, works = "pipe", "no sandbox; the output is read and thrown away", ("stdout",)

    def options(self, work):
        return ["--mode", "spawn", "--out", "read"]


class Clone(Contender):
    name, what = "clone", "clone into the same namespaces, then exec: no mounts, filter, limits or result"
    works = STARTS

    def options(self, work):
        return ["--mode", "clone", "--out", work.out]


class Unshare(Contender):
    name, what = "unshare", "util-linux: the same namespaces, nothing else"
    works = STARTS

    def prepare(self):
        self.path = self.need("unshare", "util-linux")

    def wrap(self, argv, work):
        user = [] if self.identity.uid == 0 else ["--user"]
        return [self.path, *user, "--mount", "--pid", "--net", "--ipc", "--uts", "--cgroup", "--fork", "--", *argv]


class Bwrap(Contender):
    name, what = "bwrap", "bwrap --unshare-all --ro-bind / /"

    def prepare(self):
        self.path = self.need("bwrap", "bubblewrap")

    def wrap(self, argv, work):
        more = [] if work.name in STARTS else ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
        return [self.path, "--unshare-all", "--ro-bind", "/", "/", *more, "--", *argv]


class BwrapSame(Bwrap):
    name, what = "bwrap-same", "bwrap with the mounts and covers that belljar makes; no filter, no limits"
    guest_sees_host = False

    def wrap(self, argv, work):
        """The mounts are read off belljar's own plan, as bench/startup does."""
        plan = json.loads(self.identity.run([self.stage.program, "explain", "--json", "--", "/bin/true"]))
        empty = self.stage.dir / "empty"
        command = [self.path, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--setenv", "PATH",
                   "/usr/bin:/bin", "--hostname", "belljar"]
        covers = ["--tmpfs", "/proc/sys"]
        for what in (step["what"] for step in plan["steps"]):
            if found := re.fullmatch(r"mount (\S+) at (\S+), read-only", what):
                command += [] if found[2].startswith("/dev/") else ["--ro-bind", found[1], found[2]]
            elif found := re.fullmatch(r"link (\S+) to (\S+)", what):
                command += [] if found[1].startswith("/dev/") else ["--symlink", found[2], found[1]]
            elif what.startswith("cover "):
                for path in filter(os.path.exists, what.removeprefix("cover ").split(", ")):
                    covers += ["--ro-bind", str(empty) if os.path.isdir(path) else "/dev/null", path]
        command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/workspace", *covers]
        command += ["--ro-bind", str(self.stage.shared), "/bench"] if work.mount else []
        return [*command, "--chdir", "/workspace", "--", *argv]


class Firejail(Contender):
    name, what = "firejail", "firejail --noprofile with no network, no capabilities, its filter"
    scratch = "/dev/shm"

    def prepare(self):
        self.path = self.need("firejail")

    def wrap(self, argv, work):
        return [self.path, "--quiet", "--noprofile", "--keep-var-tmp", "--net=none", "--caps.drop=all", "--seccomp", "--", *argv]


class SandboxRuntime(Contender):
    name, what = "srt", "@anthropic-ai/sandbox-runtime: node, bwrap and proxies"
    scratch = "/dev/shm"

    def prepare(self):
        installed = ROOT / "build/bench/npm/node_modules/@anthropic-ai/sandbox-runtime"
        if not (installed / "dist/cli.js").is_file():
            raise Skip("not installed; bench/run --install (npm install @anthropic-ai/sandbox-runtime)")
        for program, package in (("node", "nodejs"), ("bwrap", "bubblewrap"), ("socat", None), ("rg", "ripgrep")):
            self.need(program, package)
        staged = self.stage.dir / "npm"
        if not staged.exists():
            shutil.copytree(installed.parents[2], staged, symlinks=True)
            subprocess.run(["chmod", "-R", "a+rX", staged], check=True)
        settings = self.stage.dir / f"srt-{self.identity.uid}.json"
        settings.write_text(json.dumps({
            "network": {"allowedDomains": [], "deniedDomains": []},
            "filesystem": {"denyRead": [], "allowWrite": ["/tmp", "/dev/shm"], "denyWrite": []}}))
        self.command = [self.need("node"), str(staged / "node_modules/@anthropic-ai/sandbox-runtime/dist/cli.js"),
                        "--settings", str(settings)]
        self.live_share = 0.02

    def wrap(self, argv, work):
        return [*self.command, "-c", shlex.join(map(str, argv))]


class BelljarProgram(Contender):
    name, what, base, ours = "belljar", "belljar run, the whole program", "bwrap", True
    guest_sees_host = False

    def wrap(self, argv, work):
        mount = ["--ro", f"{self.stage.shared}:/bench"] if work.mount else []
        return [str(self.stage.program), "run", *mount, "--", *argv]


class Library(Contender):
    """Rows of the library differ by the mode of its racer."""

    name, what, mode = "library", "Engine::Run: a new sandbox from nothing, and its result", "cold"
    ours = library = True
    guest_sees_host = False
    extra = ()

    def __init__(self, identity):
        super().__init__(identity)
        self.base_by_work = {"start": "clone", "throughput": "clone"} if self.mode == "cold" else {}

    def prepare(self):
        if self.stage.library_racer is None:
            raise Skip(self.stage.no_library)

    def options(self, work):
        mount = ["--mount", str(self.stage.shared)] if work.mount else []
        return ["--mode", self.mode, "--out", work.out, *mount, *self.extra]


class LibraryLarge(Library):
    name, what, works = "library-large", "the same from a caller with 256 MB in memory", ("start",)
    extra = ("--ballast", "256")


class LibraryTail(Library):
    name, what, works = "library-tail", "the same, keeping only the first and last 32 KB", ("stdout",)
    base = "pipe"

    def options(self, work):
        return ["--mode", self.mode, "--out", "drop"]


class LibraryWarm(Library):
    name, what, works, mode = "library-warm", "a new sandbox from the warm pool", STARTS, "warm"


class LibraryExec(Library):
    name, what, works, mode = "library-exec", "one more command in a live sandbox", (*STARTS, "live"), "exec"
    idle = True


SIMPLE = [PosixSpawn, Pipe, Clone, Library, LibraryLarge, LibraryTail, LibraryWarm, LibraryExec, BelljarProgram, Unshare, Bwrap,
          BwrapSame, Firejail]
