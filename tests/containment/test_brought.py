"""What a program brings along when nothing is granted: its own toolchain, never what a link in a hostile checkout names.

Each attack is first shown to be one: the same name leads to the secret outside.
"""

import os
import pathlib
import shutil
import struct
import subprocess
import tempfile

import pytest

import harness
from harness import run_json

SECRET = "the-key-of-the-caller"
NOBODY = 0xFFFFFFFF  # In an access list: no id.
CODE = """
import sys
for path in sys.argv[1:]:
    try:
        print(open(path).read(), flush=True)
    except OSError as problem:
        print(problem)
"""


@pytest.fixture
def home():
    """A home with a key that only its owner may read, and a checkout of somebody else's making in it. A guest of root is
    another user, and would be stopped by modes as well: what it must not even see is open to all."""
    with tempfile.TemporaryDirectory(prefix="bj-home-", dir="/var/tmp") as place:
        os.chmod(place, 0o755)
        home = pathlib.Path(place, "home")
        (home / ".ssh").mkdir(parents=True)
        (home / ".ssh/key").write_text(SECRET)
        (home / ".ssh/key").chmod(0o644 if harness.IS_ROOT else 0o600)
        (home / "checkout/venv/bin").mkdir(parents=True)
        (home / "checkout/venv/pyvenv.cfg").touch()
        yield home


def environment(home, **more):
    return {**os.environ, "HOME": str(home), **more}


def keys(home):
    return [str(home / ".ssh/key"), str(home / "checkout/link") + str(home / ".ssh/key"), str(home / "checkout/out/.ssh/key")]


@pytest.mark.parametrize("target", ["/", "home"])
@pytest.mark.parametrize("by", ["path", "PATH", "relative PATH"])
def test_a_planted_link_brings_nothing(home, target, by):
    """venv/bin/python leads through a link to the whole host, or to the home: its prefix was once bound as it was called."""
    checkout = home / "checkout"
    python = checkout / "venv/bin/python"
    if target == "/":
        (checkout / "link").symlink_to("/")
        python.symlink_to("../../link/bin/python3")
    else:
        (checkout / "out").symlink_to("..")
        (home / "bin").mkdir()
        shutil.copy2(harness.PYTHON, home / "bin/python3")
        (home / "pyvenv.cfg").touch()
        (home / "conda-meta").mkdir()
        python.symlink_to("../../out/bin/python3")
    outside = subprocess.run([str(python), "-c", CODE, *keys(home)], capture_output=True, text=True)
    assert SECRET in outside.stdout, f"the attack does nothing outside: {outside}"
    name = "./venv/bin/python" if by == "path" else "python"
    path = "venv/bin" if by == "relative PATH" else str(python.parent)
    result = run_json("--", name, "-c", CODE, *keys(home), cwd=checkout, env=environment(home, PATH=f"{path}:/usr/bin:/bin"))
    if SECRET in result["stdout"]:
        raise harness.Escape(str(result))
    brought = {pathlib.Path(entry["path"]) for entry in result["receipt"].get("brought", ())}
    assert brought <= {checkout / "venv"}, brought


def test_what_is_withheld_names_its_flag(home):
    checkout = home / "checkout"
    tool = home / "elsewhere/tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho ran\n")
    tool.chmod(0o755)
    (checkout / "tool").symlink_to("../elsewhere/tool")
    done = harness.belljar("--", "./tool", cwd=checkout, env=environment(home))
    assert done.returncode == 125 and f"--ro {tool}" in done.stderr, done
    granted = harness.belljar("--ro", str(tool), "--", str(tool), cwd=checkout, env=environment(home))
    assert granted.stdout == "ran\n", granted


def test_a_name_that_commands_the_terminal_is_shown_as_it_is(home):
    """It is the target of a planted link, and stands in Belljar's own refusal."""
    tool = home / "elsewhere" / "ev\x1b]0;owned\x07il\nbelljar: all is well; $(touch owned)"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    (home / "checkout/tool").symlink_to(tool)
    for verb in ("run", "explain"):
        done = subprocess.run([harness.BELLJAR, verb, "--", "./tool"], capture_output=True, cwd=home / "checkout", env=environment(home))
        assert done.returncode == 125 and b"\\x1b" in done.stderr and b"\\x0abelljar: all is well" in done.stderr, done
        assert done.stderr.count(b"\n") == 1 and not set(done.stderr) & {0x1b, 0x07}, done.stderr
        assert b"--ro '" in done.stderr, "quoted for a shell"


def test_a_pipe_instead_of_a_file_holds_nobody(home):
    """pyenv's version file, as an attacker may make it: nobody will ever write into it."""
    shims = home / "checkout/shims"
    shims.mkdir()
    shutil.copy2("/bin/true", shims / "tool")
    os.mkfifo(home / "checkout/version")
    done = harness.belljar("--", "tool", env=environment(home, PATH=f"{shims}:/usr/bin:/bin"))
    assert done.returncode == 0, done


def test_what_is_brought_is_told(home):
    """By explain before, and by the receipt after."""
    venv = home / "work/venv"
    subprocess.run([harness.PYTHON, "-m", "venv", "--without-pip", str(venv)], check=True)
    result = run_json("--", str(venv / "bin/python"), "-c", "import sys; print(sys.prefix)", env=environment(home))
    assert result["stdout"] == f"{venv}\n", result
    assert [entry["path"] for entry in result["receipt"]["brought"]] == [str(venv)]
    assert "virtual environment" in result["receipt"]["brought"][0]["why"]
    done = subprocess.run([harness.BELLJAR, "explain", "--", str(venv / "bin/python")], capture_output=True, text=True,
                          env=environment(home))
    assert f"{venv}  (Python virtual environment of {venv}/bin/python)" in done.stdout, done.stdout


# A user of the list beside the owner's own group, as setfacl -m u:12345:rwx writes it: (tag, rights, id) of each entry.
LISTED = struct.pack("<I" + 5 * "HHI", 2, 1, 7, NOBODY, 2, 7, 12345, 4, 5, NOBODY, 16, 7, NOBODY, 32, 5, NOBODY)


@pytest.mark.parametrize("others", (["group"] if harness.IS_ROOT else []) + ["listed user", "own group", "nobody"])  # Of a group that one is not in.
def test_a_toolchain_behind_a_link_still_works(home, others):
    """As uv lays it out: the environment leads to a Python by a link that names its minor version. But not when a group
    of whom nobody knows may write it."""
    real = home / ".local/share/uv/python/cpython-3.11.2"
    (real / "bin").mkdir(parents=True)
    (real / "lib/python3.11").mkdir(parents=True)
    (real / "lib/python3.11/os.py").touch()
    (real / "bin/python3.11").write_text('#!/bin/sh\necho "ran as $0"\n')
    (real / "bin/python3.11").chmod(0o755)
    (real / "bin/python3").symlink_to("python3.11")
    (real.parent / "cpython-3.11").symlink_to("cpython-3.11.2")
    python = home / "checkout/venv/bin/python"
    python.symlink_to(real.parent / "cpython-3.11/bin/python3")
    os.chown(real, -1, {"group": 12345, "own group": os.getegid()}.get(others, -1))
    real.chmod(0o755 if others == "nobody" else 0o775)
    if others == "listed user":
        os.setxattr(real, "system.posix_acl_access", LISTED)
    if others in ("group", "listed user"):
        done = harness.belljar("--", "./venv/bin/python", cwd=home / "checkout", env=environment(home))
        assert done.returncode == 125 and f"--ro {real}" in done.stderr, done
        return
    result = run_json("--", "./venv/bin/python", cwd=home / "checkout", env=environment(home))
    assert result["stdout"] == f"ran as {python}\n", result
