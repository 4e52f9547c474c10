"""Where a bench runs: compiled racers, a directory that every user can read, and the identities to race as."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench"
NOBODY = 65534


class Skip(Exception):
    """Something that is not raced, and why. Always shown."""


def warn(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def readable(path):
    with contextlib.suppress(OSError):
        return path.is_file() and os.access(path, os.R_OK)
    return False


def find_program():
    """The belljar to race: $BELLJAR, or the newest of the builds."""
    if named := os.environ.get("BELLJAR"):
        return pathlib.Path(named).resolve()
    built = [p for p in (ROOT / "build" / preset / "src/cli/belljar" for preset in ("release", "test")) if readable(p)]
    if not built:
        sys.exit("bench: there is no belljar to race. Build it first (./belljar --version), or name one: BELLJAR=PATH bench/run")
    return max(built, key=lambda path: path.stat().st_mtime)


def find_library(program):
    """libbelljar.a of the same build as the program; None where only the program is there."""
    places = [os.environ.get("BELLJAR_BUILD"), program.parents[2] if len(program.parents) > 2 else None]
    return next((found for place in places if place and readable(found := pathlib.Path(place) / "libbelljar.a")), None)


def build_dir():
    """build/bench, or a directory of this run's own where the checkout can't be written."""
    wanted = ROOT / "build" / "bench"
    with contextlib.suppress(OSError):
        wanted.mkdir(parents=True, exist_ok=True)
    return wanted if os.access(wanted, os.W_OK) else None


class Stage:
    """Everything on disk that a bench makes. Not under /tmp: peers put a filesystem of their own over that."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix=f"bj-bench-{os.getpid()}-", dir="/var/tmp"))
        self.dir.chmod(0o755)
        for name in ("shared", "homes", "empty"):
            (self.dir / name).mkdir(mode=0o755)
        self.shared = self.dir / "shared"  # what guests see as /bench
        shutil.copytree(BENCH / "project", self.shared / "project")
        self.source = find_program()
        self.program = self.dir / "belljar"
        shutil.copy2(self.source, self.program)
        self.program.chmod(0o755)
        self.cache = build_dir() or self.dir
        self.spawn_racer = self.compile("spawn_racer", ["racer.cc", "spawn_racer.cc"])
        self.syscalls = self.compile("syscalls", ["syscalls.c"], compiler=["gcc", "-static"], into=self.shared)
        self.library_racer, self.no_library = None, ""
        library = find_library(self.source)
        if library is None:
            self.no_library = f"no libbelljar.a beside {self.source}; build the checkout, or set BELLJAR_BUILD"
        else:
            self.library_racer = self.compile("library_racer", ["racer.cc", "library_racer.cc"], library=library)

    def compile(self, name, sources, compiler=("g++", "-std=c++23", "-pthread"), library=None, into=None):
        """One program, compiled again when a source or the library is newer than it, and copied to the stage."""
        made = self.cache / name
        inputs = [BENCH / "programs" / source for source in sources]
        watched = [*inputs, BENCH / "programs" / "racer.h", *([library] if library else [])]
        if not made.exists() or any(path.stat().st_mtime >= made.stat().st_mtime for path in watched):
            if shutil.which(compiler[0]) is None:
                sys.exit(f"bench: {compiler[0]} is missing, which compiles the racers. On Debian: apt-get install g++")
            command = [*compiler, "-O2", f"-I{ROOT}/include", "-o", f"{made}.new", *inputs, *([library] if library else [])]
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"bench: compiling {name} failed:\n{done.stderr}")
            os.replace(f"{made}.new", made)
        staged = (into or self.dir) / name
        if staged != made:
            shutil.copy2(made, staged)
        staged.chmod(0o755)
        return staged

    def home(self, uid):
        """An empty home directory of that user, since some peers insist on one."""
        path = self.dir / "homes" / str(uid)
        if not path.exists():
            path.mkdir(mode=0o700)
            if os.geteuid() == 0:
                os.chown(path, uid, uid if uid else 0)
        return path

    def close(self):
        """Removes it all, unless something is still mounted inside: then a removal might reach files of the host."""
        for _ in range(3):
            mounts = [line.split()[4] for line in open("/proc/self/mountinfo", encoding="utf-8")]
            inside = [path for path in mounts if path.startswith(f"{self.dir}/")]
            for path in reversed(inside):
                subprocess.run(["umount", path], stderr=subprocess.DEVNULL)
        if inside:
            warn(f"left {self.dir}: still mounted inside it: {', '.join(inside)}")
            return
        subprocess.run(["rm", "-rf", "--one-file-system", self.dir], stderr=subprocess.DEVNULL)


class Identity:
    """Who races: the user that started the bench, or, with --user as root, an unprivileged one."""

    def __init__(self, stage, uid):
        self.stage, self.uid = stage, uid
        self.name = "root" if uid == 0 else "user"
        self.prefix = []
        if uid != os.geteuid():
            self.prefix = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"]
        self.env = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(stage.home(uid)), "LANG": "C.UTF-8",
                    "XDG_RUNTIME_DIR": str(stage.home(uid))}

    def run(self, argv, **options):
        """A command of the preparation, as this user; raises Skip with what it said when it fails."""
        options.setdefault("timeout", 120)
        try:
            done = subprocess.run([*self.prefix, *map(str, argv)], env=self.env, capture_output=True, text=True, **options)
        except subprocess.TimeoutExpired:
            raise Skip(f"{argv[0]} did not end in time") from None
        if done.returncode != 0:
            raise Skip(f"{' '.join(map(str, argv[:2]))} failed: {' '.join(done.stderr.split())[-300:]}")
        return done.stdout


def identities(stage, also_user):
    found = [Identity(stage, os.geteuid())]
    if also_user and os.geteuid() == 0:
        found.append(Identity(stage, NOBODY))
    return found
