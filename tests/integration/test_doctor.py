"""`belljar doctor` on this host, and on hosts that lack something: made poorer for one process by a seccomp filter
(forbid_userns), a covered /proc, other cgroup mounts or a PATH of our own.

Runs as root or as any user; BELLJAR names the program and BELLJAR_GUESTS the directory that has forbid_userns.
"""
import json
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile

import pytest

import harness

BELLJAR = os.environ["BELLJAR"]
FORBID = os.path.join(os.environ["BELLJAR_GUESTS"], "forbid_userns")
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not ROOT, reason="only root can become another user or change mounts")

STATES = {"ok", "partial", "missing"}
GROUPS = {"namespaces", "filters", "limits", "files", "network", "host"}
PROBES = {
    "user namespace", "mount namespace", "pid namespace", "network namespace", "ipc namespace", "uts namespace",
    "cgroup namespace", "time namespace", "fresh /proc", "landlock", "landlock tcp", "landlock scopes",
    "seccomp filter", "seccomp kill", "seccomp tsync", "seccomp notification", "cgroups", "cgroup memory", "cgroup pids", "cgroup cpu",
    "cgroup cpuacct", "cgroup.kill", "clone3", "pidfd", "mount api", "idmapped tmpfs", "idmapped workdir", "overlayfs",
    "openat2", "close_range", "loopback", "nftables", "tiocsti", "kvm",
}
TOOLS = ["bwrap", "docker", "podman", "runc", "crun", "runsc", "firejail", "nft"]


class Doctor:
    """One examination: its JSON, by name, and its exit status."""

    def __init__(self, *prefix, env=None, as_nobody=False, before=()):
        """`before` is run as we are, `prefix` as nobody if asked for (and if we are not such a user already)."""
        argv = [*prefix, BELLJAR, "doctor", "--json"]
        if as_nobody and ROOT:
            argv = [*NOBODY, *(reachable_copy(word) if word in (FORBID, BELLJAR) else word for word in argv)]
        done = subprocess.run([*before, *argv], capture_output=True, text=True, timeout=2 * harness.PATIENCE,
                              env={**os.environ, **(env or {})}, cwd="/", check=False)
        assert done.stderr == ""
        self.status = done.returncode
        self.document = json.loads(done.stdout)
        self.levels = {level["level"]: level for level in self.document["levels"]}
        self.probes = {probe["name"]: probe for probe in self.document["probes"]}
        self.tools = {tool["name"]: tool for tool in self.document["tools"]}

    def state(self, name):
        return self.probes[name]["state"]


COPIES = {}


def reachable_copy(program):
    """A copy that every user may run: the build directory may lie where nobody else may look."""
    if program not in COPIES:
        directory = pathlib.Path(tempfile.mkdtemp(prefix="belljar-doctor-", dir="/tmp"))
        COPIES[program] = shutil.copy2(program, directory)
        directory.chmod(0o755)
    return str(COPIES[program])


@pytest.fixture(scope="module", autouse=True)
def remove_copies():
    yield
    for path in COPIES.values():
        shutil.rmtree(os.path.dirname(path))
    COPIES.clear()


@pytest.fixture(scope="module")
def here():
    return Doctor()


def user_namespaces_here():
    """Asked of somebody else: util-linux."""
    return subprocess.run(["unshare", "-Urm", "mount", "-t", "tmpfs", "none", "/tmp"], capture_output=True,
                          check=False).returncode == 0


def places():
    """What an examination could leave on the host."""
    cgroups = {os.path.join(path, name) for path, directories, _ in os.walk("/sys/fs/cgroup") for name in directories
               if name.startswith("belljar-probe")}
    return cgroups | set(pathlib.Path("/proc/self/mountinfo").read_text().splitlines())


def test_document_has_its_documented_shape(here):
    assert set(here.document) == {"host", "levels", "backends", "probes", "tools"}
    host = here.document["host"]
    assert set(host) == {"kernel", "arch", "distribution", "user", "uid", "container"}
    assert host["kernel"] == os.uname().release and host["arch"] == os.uname().machine
    assert host["uid"] == os.geteuid()
    assert [level["level"] for level in here.document["levels"]] == ["process", "kernel", "container"]
    for level in here.document["levels"]:
        assert set(level) == {"level", "state", "reachable", "form", "detail", "lacks"}
        assert level["reachable"] == (level["state"] != "missing")
        assert all(set(lack) == {"probe", "state", "consequence", "fix"} for lack in level["lacks"])
        assert all(lack["probe"] in here.probes and lack["state"] in STATES - {"ok"} for lack in level["lacks"])
    for probe in here.document["probes"]:
        assert set(probe) == {"name", "group", "state", "purpose", "detail", "fix"}
        assert probe["state"] in STATES and probe["group"] in GROUPS and probe["purpose"]
    assert PROBES <= set(here.probes) and len(here.probes) == len(here.document["probes"])
    assert [tool["name"] for tool in here.document["tools"]] == TOOLS
    for tool in here.document["tools"]:
        assert set(tool) == {"name", "path", "version", "state", "note"} and tool["state"] in STATES


def test_every_lack_says_why(here):
    for probe in here.document["probes"]:
        if probe["state"] != "ok":
            assert probe["detail"], probe


def test_exit_status_is_about_level_kernel(here):
    assert here.status == (0 if here.levels["kernel"]["reachable"] else 1)


def test_agrees_with_another_program_about_user_namespaces(here):
    assert (here.state("user namespace") == "ok") == user_namespaces_here()


def test_user_namespaces_forbidden_as_user(here):
    """The form without namespaces, or none: nothing else may be claimed."""
    poor = Doctor(FORBID, as_nobody=True)
    assert poor.state("user namespace") == "missing"
    assert "seccomp" in poor.probes["user namespace"]["detail"] and poor.probes["user namespace"]["fix"]
    for name in ("mount namespace", "pid namespace", "network namespace", "fresh /proc", "overlayfs", "nftables"):
        assert poor.state(name) == "missing", name
    kernel = poor.levels["kernel"]
    scoped = here.state("landlock scopes") == "ok" and here.state("seccomp filter") == "ok"
    assert kernel["form"] == ("landlock-only" if scoped else "")
    assert kernel["state"] == ("partial" if scoped else "missing")
    assert poor.status == (0 if scoped else 1)
    assert any(lack["probe"] == "user namespace" and lack["fix"] for lack in kernel["lacks"])
    assert poor.levels["process"]["form"] == "process-plain"


def test_conclusion_changes_with_the_filter():
    """The same user, with and without."""
    if not user_namespaces_here():
        pytest.skip("user namespaces are forbidden here already")
    rich, poor = Doctor(as_nobody=True), Doctor(FORBID, as_nobody=True)
    assert rich.levels["kernel"]["form"] == "namespaces" and rich.state("user namespace") == "ok"
    assert poor.levels["kernel"]["form"] != "namespaces"


@needs_root
def test_root_needs_no_user_namespace():
    poor = Doctor(FORBID)
    assert poor.state("user namespace") == "missing"
    assert poor.state("mount namespace") == "ok"
    assert poor.levels["kernel"]["form"] == "namespaces" and poor.levels["kernel"]["state"] == "partial"


def test_user_namespaces_without_power():
    """Made, but nothing can be mounted in them, as under AppArmor's rule: as bad as none."""
    poor = Doctor(FORBID, "--powerless", as_nobody=True)
    assert poor.state("user namespace") == "missing"
    assert "can be made, but" in poor.probes["user namespace"]["detail"]
    assert poor.levels["kernel"]["form"] != "namespaces"


def test_second_listener():
    poor = Doctor(FORBID, "--listened")
    assert poor.state("seccomp filter") == "ok"
    assert poor.state("seccomp notification") == "missing"
    assert "only one" in poor.probes["seccomp notification"]["detail"]
    assert any(lack["probe"] == "seccomp notification" for lack in poor.levels["kernel"]["lacks"])


def test_max_user_namespaces_zero():
    """The limit counts at every level above, so one set inside a user namespace holds for what is made in it."""
    if not user_namespaces_here():
        pytest.skip("user namespaces are forbidden here already")
    script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\""
    poor = Doctor("unshare", "-Ur", "sh", "-c", script, "sh")
    assert poor.state("user namespace") == "missing"
    assert "sysctl -w user.max_user_namespaces=" in poor.probes["user namespace"]["fix"]


def test_covered_proc():
    """As in most containers: a fresh /proc is refused, although all namespaces can be made."""
    if not user_namespaces_here():
        pytest.skip("user namespaces are forbidden here already")
    # A user's cover counts only for namespaces below the one it was made in.
    outer, inner = ("unshare -m", "") if ROOT else ("unshare -Urm", "unshare -Urm")
    cover = [*outer.split(), "sh", "-c", f"mount -t tmpfs none /proc/irq && exec {inner} \"$@\"", "sh"]
    poor = Doctor(before=cover, as_nobody=True)
    assert poor.state("user namespace") == "ok" and poor.state("pid namespace") == "ok"
    assert poor.state("fresh /proc") == "missing"
    assert "systempaths=unconfined" in poor.probes["fresh /proc"]["fix"]
    assert poor.levels["kernel"]["form"] != "namespaces"


@needs_root
@pytest.mark.parametrize("mount, kind", [("true", "none"), ("mount -t cgroup2 none /sys/fs/cgroup", "v2")])
def test_other_cgroup_mounts(mount, kind):
    script = f"umount -R /sys/fs/cgroup && {mount} && exec \"$@\""
    poor = Doctor("unshare", "-m", "sh", "-c", script, "sh")
    assert poor.probes["cgroups"]["detail"] == kind
    assert poor.state("cgroups") == ("ok" if kind == "v2" else "missing")
    if kind == "none":
        assert poor.state("cgroup memory") == "missing"
        assert poor.levels["kernel"]["state"] == "partial"


def test_leaves_nothing_behind():
    before = places()
    for _ in range(3):
        Doctor()
    new = places() - before
    # Others mount things and examine the host meanwhile; what stays is ours.
    if not harness.wait_until(lambda: not new & places()):
        raise harness.LeftBehind(sorted(new & places()))


def fake_tools(directory, **scripts):
    for name, body in scripts.items():
        path = directory / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return {"PATH": str(directory)}  # No other tool is asked, and takes time.


def test_tools_and_bad_versions(tmp_path):
    env = fake_tools(tmp_path, runc="echo 'runc version 1.1.5'; echo 'spec: 1.0.2-dev'", crun="echo crun version 1.8.1",
                     firejail="echo firejail version 0.9.72", bwrap="exit 1")
    # All tools together have three seconds to tell; a busy machine may need more.
    def examine():
        found = Doctor(env=env)
        return found if all(found.tools[name]["version"] for name in ("runc", "crun", "firejail")) else None

    found = harness.wait_until(examine)
    assert found.tools["runc"]["version"] == "1.1.5" and found.tools["runc"]["path"] == str(tmp_path / "runc")
    assert found.tools["runc"]["state"] == "partial" and "CVE-2024-21626" in found.tools["runc"]["note"]
    hybrid = found.probes["cgroups"]["detail"].startswith("hybrid")
    assert found.tools["crun"]["state"] == ("partial" if hybrid else "ok")
    assert found.tools["firejail"]["state"] == "ok"
    assert found.tools["bwrap"]["state"] == "partial" and found.tools["bwrap"]["version"] == ""


def test_tools_that_hang_are_ended(tmp_path):
    marker = f"3171{os.getpid()}.5"  # seconds, and a word to look for
    env = fake_tools(tmp_path, runc=f"/bin/sleep {marker} & /bin/sleep {marker}", podman=f"exec /bin/sleep {marker}")
    found = Doctor(env=env)
    assert found.tools["runc"]["state"] == "partial" and "in time" in found.tools["runc"]["note"]
    if not harness.wait_until(lambda: not harness.processes_with(marker)):
        raise harness.LeftBehind(harness.processes_with(marker))


def test_relative_path_entries_are_not_run(tmp_path):
    ran = tmp_path / "ran"
    fake_tools(tmp_path, runc=f"touch {ran}; echo runc version 9.9.9")
    done = subprocess.run([BELLJAR, "doctor", "--json"], cwd=tmp_path, env={**os.environ, "PATH": ".::/bin"},
                          capture_output=True, text=True, timeout=2 * harness.PATIENCE, check=False)
    assert "9.9.9" not in done.stdout and not ran.exists()


def table(env=None, terminal=False):
    argv = [BELLJAR, "doctor"]
    if terminal:
        argv = ["script", "-qec", f"stty cols 100; {BELLJAR} doctor", "/dev/null"]
    clean = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    return subprocess.run(argv, capture_output=True, text=True, timeout=2 * harness.PATIENCE, env={**clean, **(env or {})},
                          stdin=subprocess.DEVNULL, check=False).stdout


def test_table_has_its_groups_in_order(here):
    text = table()
    headings = [line for line in text.splitlines() if line and line[0] != " "][1:]
    assert headings == ["Levels", "Backends", "Namespaces", "Filters", "Limits", "Files", "Network", "Host", "Tools"]
    for name in here.probes:
        assert name in text
    for probe in here.document["probes"]:
        assert probe["fix"] in text, probe


def test_backends_are_tried(here):
    backends = {backend["name"]: backend for backend in here.document["backends"]}
    assert list(backends) == ["native", "bwrap", "oci", "docker"]
    assert backends["native"]["state"] in ("ok", "partial"), backends["native"]
    assert backends["bwrap"]["state"] == "partial" and any("terminals" in lack for lack in backends["bwrap"]["lacks"])
    without = Doctor(env={"PATH": "/nonexistent"}).document["backends"]
    assert without[1]["state"] == "missing" and "bubblewrap" in without[1]["fix"]


def test_a_set_uid_bwrap_is_refused(tmp_path):
    program = pathlib.Path(shutil.copy2(shutil.which("bwrap"), tmp_path))
    program.chmod(0o4755)
    done = subprocess.run([BELLJAR, "run", "--backend", "bwrap", "--", "true"], capture_output=True, text=True,
                          env={**os.environ, "PATH": str(tmp_path)})
    assert done.returncode == 125 and "is set-uid" in done.stderr, done


def test_colour_only_at_a_terminal():
    assert "\033[" not in table()
    assert "\033[32m" in table(terminal=True)
    assert "\033[" not in table(terminal=True, env={"NO_COLOR": "1"})
    assert "\033[32m" in table(terminal=True, env={"NO_COLOR": ""})


def test_table_keeps_to_the_width_of_the_terminal():
    lines = table(terminal=True, env={"NO_COLOR": "1"}).splitlines()
    # Fixes are for copying and stay whole; so do paths.
    long = [line for line in lines[1:] if len(line) > 100 and "fix: " not in line and "/" not in line]
    assert long == []


def test_help_and_bad_options():
    done = subprocess.run([BELLJAR, "doctor", "--help"], capture_output=True, text=True, timeout=2 * harness.PATIENCE, check=False)
    assert done.returncode == 0 and "--json" in done.stdout and "Exit status" in done.stdout
    done = subprocess.run([BELLJAR, "doctor", "--jsn"], capture_output=True, text=True, timeout=2 * harness.PATIENCE, check=False)
    assert done.returncode == 2 and "--jsn" in done.stderr and done.stdout == ""
