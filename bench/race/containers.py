"""Peers that want an image: runc, runsc, podman, docker. No registry is asked: the image is a few empty directories and links,
and the host's /usr is mounted into it read-only, so that every contender runs the very same programs."""

import contextlib
import glob
import json
import os
import shutil
import subprocess
import tarfile
import time

from .contenders import Contender
from .stage import Skip, warn

DIRECTORIES = ("usr", "proc", "sys", "dev", "tmp", "run", "etc", "bench", "workspace")
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
IMAGE = "belljar-bench"


def refuse_real_time():
    """Programs in Go wait by yielding. At a real-time priority that starves the thread they wait for, and all else."""
    if os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR):
        raise Skip("not raced at a real-time priority, where it may spin for ever; race it without chrt, on a quiet machine")


def engine_cgroups():
    return set(glob.glob("/sys/fs/cgroup/docker")) | set(glob.glob("/sys/fs/cgroup/*/docker")) | set(
        glob.glob("/sys/fs/cgroup/libpod_parent")) | set(glob.glob("/sys/fs/cgroup/*/libpod_parent"))


CGROUPS_BEFORE = engine_cgroups()


def remove_new_cgroups():
    """The engines leave their parent groups behind; those that were not there before go, if nothing is in them."""
    for top in engine_cgroups() - CGROUPS_BEFORE:
        for place, _, _ in os.walk(top, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(place)


def rootfs(stage):
    """The root filesystem as a directory."""
    root = stage.dir / "rootfs"
    if not root.exists():
        for name in DIRECTORIES:
            (root / name).mkdir(parents=True)
            (root / name).chmod(0o755)
        for name, target in LINKS.items():
            (root / name).symlink_to(target)
        if os.path.isdir("/etc/alternatives"):  # where /usr/bin/cc and others point to
            shutil.copytree("/etc/alternatives", root / "etc/alternatives", symlinks=True)
        (root / "etc/passwd").write_text("root:x:0:0:root:/:/bin/sh\n")
        subprocess.run(["chmod", "-R", "a+rX", root], check=True)
    return root


def image_tar(stage):
    path = stage.dir / "image.tar"
    if not path.exists():
        with tarfile.open(path, "w") as tar:
            tar.add(rootfs(stage), ".", filter=lambda entry: entry)
        path.chmod(0o644)
    return path


class Bundle(Contender):
    """An OCI runtime called directly with a bundle, without any engine above it."""

    guest_sees_host = False
    runtime = ""
    live_share = 0.1

    def prepare(self):
        refuse_real_time()
        self.path = self.need(self.runtime)
        self.state = self.stage.dir / f"{self.name}-{self.identity.uid}"
        self.state.mkdir(exist_ok=True)
        if os.geteuid() == 0:
            os.chown(self.state, self.identity.uid, self.identity.uid)
        rootfs(self.stage)

    def bundle(self, argv, work):
        """config.json of one work, from what `runc spec` proposes for this user."""
        place = self.state / work.name
        if not place.exists():
            self.identity.run(["mkdir", place])
            rootless = [] if self.identity.uid == 0 else ["--rootless"]
            self.identity.run([self.need("runc"), "spec", *rootless, "--bundle", place])
        config = json.loads((place / "config.json").read_text())
        config["root"] = {"path": str(rootfs(self.stage)), "readonly": True}
        config["process"].update(terminal=False, args=list(map(str, argv)), cwd="/")
        config["mounts"] = [m for m in config["mounts"] if m["destination"] not in ("/usr", "/bench", "/tmp")] + [
            {"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]},
            {"destination": "/bench", "type": "bind", "source": str(self.stage.shared), "options": ["rbind", "ro"]},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]}]
        (place / "config.json").write_text(json.dumps(config))
        return place

    def flags(self):
        return []

    def wrap(self, argv, work):
        return [self.path, "--root", str(self.state / "state"), *self.flags(), "run", "--bundle", str(self.bundle(argv, work)), "{id}"]


class Runc(Bundle):
    name, what, runtime = "runc", "runc run with a bundle, its default configuration", "runc"


class Runsc(Bundle):
    name, what, runtime = "runsc", "gVisor: runsc run, platform ptrace", "runsc"
    works = ("start", "throughput", "python", "stdout", "syscalls", "build")

    def flags(self):
        more = [] if self.identity.uid == 0 else ["--rootless"]
        return ["--platform=ptrace", "--network=none", "--ignore-cgroups", *more]


class Podman(Contender):
    name, what = "podman", "podman run --rm --network=none"
    guest_sees_host = False
    live_share = 0.02

    def prepare(self):
        refuse_real_time()
        path = self.need("podman")
        place = self.identity.stage.dir / f"podman-{self.identity.uid}"
        place.mkdir(exist_ok=True)
        if os.geteuid() == 0:
            os.chown(place, self.identity.uid, self.identity.uid)
        self.command = [path, "--root", f"{place}/root", "--runroot", f"{place}/run", "--cgroup-manager", "cgroupfs",
                        "--events-backend", "none", "--runtime", self.need("runc")]
        if self.identity.uid != 0:
            self.command += ["--storage-driver", "vfs"]
        self.identity.run([*self.command, "import", image_tar(self.stage), IMAGE])

    def wrap(self, argv, work):
        return [*self.command, "run", "--rm", "-i", "--pull=never", "--network=none", "--log-driver=none", "-v", "/usr:/usr:ro", "-v",
                f"{self.stage.shared}:/bench:ro", "--tmpfs", "/tmp:exec", "--ulimit", "nofile=1024:1024", "--ulimit",
                "nproc=1024:1024", IMAGE, *argv]  # its defaults may be above what this session is allowed

    def close(self):
        if hasattr(self, "command"):
            subprocess.run([*self.identity.prefix, *self.command, "rmi", "-f", IMAGE], env=self.identity.env, capture_output=True)
            remove_new_cgroups()


class DockerDaemon:
    """A dockerd of the bench's own: its own socket and directories, no bridge, no firewall rules."""

    running = None

    def __init__(self, contender):
        stage, identity = contender.stage, contender.identity
        if identity.uid != 0:
            raise Skip("the bench starts a daemon of its own, which only root may")
        contender.need("docker", "docker.io")
        dockerd = contender.need("dockerd", "docker.io")
        place = stage.dir / "docker"
        place.mkdir(exist_ok=True)
        self.host = f"unix://{place}/socket"
        log = open(place / "log", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [dockerd, "--host", self.host, "--data-root", f"{place}/data", "--exec-root", f"{place}/exec", "--pidfile",
             f"{place}/pid", "--iptables=false", "--ip6tables=false", "--bridge=none"],
            env=identity.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 40
        while subprocess.run(["docker", "-H", self.host, "version"], env=identity.env, capture_output=True).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                log.seek(0)
                raise Skip(f"dockerd does not start here: {' '.join(log.read().split())[-300:]}")
            time.sleep(0.3)
        identity.run(["docker", "-H", self.host, "import", image_tar(stage), IMAGE])
        self.alive = identity.run([
            "docker", "-H", self.host, "run", "-d", "--rm", "--network=none", "-v", "/usr:/usr:ro", "-v",
            f"{stage.shared}:/bench:ro", IMAGE, "/bin/sleep", "infinity"]).strip()
        self.identity = identity

    def stop(self):
        if hasattr(self, "alive"):
            subprocess.run(["docker", "-H", self.host, "kill", self.alive], env=self.identity.env, capture_output=True)
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            warn(f"dockerd (pid {self.process.pid}) did not end within 30 s and is killed")
            self.process.kill()
            self.process.wait()

    @classmethod
    def get(cls, contender):
        if cls.running is None:
            cls.running = cls(contender)
        return cls.running


class DockerRun(Contender):
    name, what = "docker-run", "docker run --rm --network=none"
    guest_sees_host = False
    live_share = 0.02

    def prepare(self):
        refuse_real_time()
        self.daemon = DockerDaemon.get(self)

    def wrap(self, argv, work):
        return [self.need("docker"), "-H", self.daemon.host, "run", "--rm", "-i", "--network=none", "--log-driver=none", "-v",
                "/usr:/usr:ro", "-v",
                f"{self.stage.shared}:/bench:ro", "--tmpfs", "/tmp:exec", IMAGE, *argv]

    def helpers(self):
        """dockerd, and the shims, which it leaves to init."""
        place = str(self.stage.dir / "docker").encode()
        shims = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            with contextlib.suppress(OSError), open(path, "rb") as file:
                words = file.read()
                if b"containerd-shim" in words and place in words:
                    shims.append(int(path.split("/")[2]))
        return [self.daemon.process.pid, *shims]

    def close(self):
        if DockerDaemon.running is not None:
            DockerDaemon.running.stop()
            DockerDaemon.running = None
            remove_new_cgroups()


class DockerExec(DockerRun):
    name, what = "docker-exec", "docker exec in a running container: no new sandbox"
    works = ("start", "throughput", "python", "stdout", "syscalls")

    def wrap(self, argv, work):
        return [self.need("docker"), "-H", self.daemon.host, "exec", self.daemon.alive, *argv]


CONTAINERS = [Runc, Podman, DockerRun, DockerExec, Runsc]
