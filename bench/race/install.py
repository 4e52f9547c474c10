"""bench/run --install: the peers that Debian and npm have."""

import os
import shutil
import subprocess
import sys

from .stage import ROOT, warn

DEBIAN = ["bubblewrap", "firejail", "runc", "podman", "docker.io", "runsc", "util-linux", "make", "gcc", "g++", "socat", "ripgrep",
          "uidmap", "npm"]
COMMANDS = {"npm": "npm", "socat": "socat", "ripgrep": "rg", "make": "make"}
NPM = "@anthropic-ai/sandbox-runtime"


def missing():
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *DEBIAN], capture_output=True, text=True)
    installed = {line.split()[0] for line in done.stdout.splitlines() if line.endswith(" installed")}
    return [name for name in DEBIAN if name not in installed and not (name in COMMANDS and shutil.which(COMMANDS[name]))]


def apt(arguments):
    # Daemons are not started: the bench starts one of its own, and ends it.
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    sudo = [] if os.geteuid() == 0 else ["sudo", "--preserve-env=DEBIAN_FRONTEND,RUNLEVEL"]
    return subprocess.run([*sudo, "apt-get", "-qq", "-y", "-o", "DPkg::Lock::Timeout=300", *arguments], env=env,
                          stdout=subprocess.DEVNULL).returncode == 0


def install():
    if shutil.which("apt-get") is None:
        warn("--install knows only Debian's apt-get; install the peers that you want to race some other way")
    elif wanted := missing():
        warn(f"installing {' '.join(wanted)}")
        command = ["install", "--no-install-recommends", *wanted]
        if not (apt(command) or (apt(["update"]) and apt(command))):
            sys.exit(f"bench: apt-get could not install them. Try by hand: apt-get install {' '.join(wanted)}")
    place = ROOT / "build/bench/npm"
    if (place / "node_modules" / NPM).is_dir():
        return
    if shutil.which("npm") is None:
        warn(f"npm is missing, so {NPM} is not raced")
        return
    warn(f"installing {NPM} into {place}")
    place.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", place, NPM], capture_output=True, text=True)
    if done.returncode != 0:
        warn(f"npm could not install {NPM}, so it is not raced: {done.stderr.strip()[-300:]}")
