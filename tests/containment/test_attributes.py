"""Attributes of files that may only be read, and bits that would outlive the sandbox: each way once worked.
"""

import contextlib
import errno
import os
import stat
import subprocess

import pytest

import harness
from forms import answers, forms, run_form
from harness import guest


def attributes_of(path):
    status = os.stat(path)
    return (status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, status.st_ctime_ns,
            {name: os.getxattr(path, name) for name in os.listxattr(path)})


@forms
@pytest.mark.parametrize("what", ["file", ""], ids=["file", "directory"])
def test_attributes_of_read_only_files(form, what, data, victim):
    for path in (data / "file", data, victim / "file", victim):
        path.chmod(0o755)
        with contextlib.suppress(OSError):  # Not every filesystem of a host has them; the other ways are tried anyway.
            os.setxattr(path, "user.given", b"1")
    target = data / what
    before = attributes_of(target)
    result = run_form(form, "--ro", data, "--", guest("attributes"), target)
    assert "tried" in result["stdout"], result
    done = [way for way, error in answers(result["stdout"]).items() if error == 0]
    assert not done, f"changed by {done}"
    assert attributes_of(target) == before
    control = harness.outside("attributes", victim / what)
    ways = answers(control.stdout)
    for way in ("chmod", "fchmod", "fchown", "futimens", "utimensat"):
        assert ways[way] == 0, f"outside, {way} must work"
    assert attributes_of(victim / what)[:4] != before[:4]


@forms
def test_attributes_of_other_files_stay_unread(form, victim):
    """Landlock does not cover them, and where no mount hides the file either they would be there for all to read."""
    secret = "hush-this-is-not-for-guests"
    try:
        os.setxattr(victim / "file", "user.token", secret.encode())
    except OSError:
        return  # There is no way to have any here.
    code = ("import os, sys\nfor read in (lambda p: os.getxattr(p, 'user.token'), os.listxattr, "
            "lambda p: os.getxattr(p, 'user.token', follow_symlinks=False), lambda p: os.listxattr(p, follow_symlinks=False)):\n"
            "    try: print(read(sys.argv[1]))\n    except OSError as problem: print(problem)")
    control = subprocess.run([harness.PYTHON, "-c", code, victim / "file"], capture_output=True, text=True)
    assert secret in control.stdout and "user.token" in control.stdout
    result = run_form(form, "--", harness.PYTHON, "-c", code, victim / "file")
    assert result["stdout"].count("\n") == 4, result
    if secret in result["stdout"] or "user.token']" in result["stdout"]:
        raise harness.Escape(result["stdout"])


SET_IDS = stat.S_ISUID | stat.S_ISGID


@forms
@pytest.mark.parametrize("where", ["mount", "private"])
def test_no_set_id_files(form, where, project, data):
    """Made by a guest of root, a set-uid file in a writable mount would be root's: any user of the host would be root."""
    place = project if where == "mount" else "."
    result = run_form(form, "--rw", project, "--", guest("set_ids"), place)
    ways = answers(result["stdout"])
    assert "tried" in result["stdout"], result
    found = [str(path) for path in project.rglob("*") if path.lstat().st_mode & SET_IDS]
    assert not found, f"{found}, {ways}"
    answered = {way for way, error in ways.items() if error == 0}
    # mkdir takes no such bits, whatever it is asked; the name of a socket has its mode only where that could be set.
    assert {way for way in answered if not way.startswith("plain")} <= {"mkdir", "socket-bind"}
    for way in ("chmod-uid", "chmod-gid", "fchmod", "open", "openat", "mknod", "mkdir-chmod"):
        assert ways[way] == errno.EPERM, way
    ordinary = {way: error for way, error in ways.items() if way.startswith("plain")}
    if form == "landlock-only":  # Landlock does not cover modes: there no file of the host may get another one.
        ordinary = {way: error for way, error in ordinary.items() if way in ("plain-open", "plain-openat", "plain-mkdir")}
    assert ordinary and set(ordinary.values()) == {0}, ways
    if where == "mount" and form == "namespaces":
        assert stat.S_IMODE((project / "plain").stat().st_mode) == 0o1777
        assert stat.S_IMODE((project / "chmod-uid").stat().st_mode) == 0o755
    control = harness.outside("set_ids", data)
    made = {path.name for path in data.iterdir() if path.lstat().st_mode & SET_IDS}
    assert {"chmod-gid", "fchmod", "open", "openat", "mknod", "mkdir-chmod"} <= made, control
