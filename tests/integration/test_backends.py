"""`--backend bwrap` where somebody interferes while bwrap makes its walls: a program in bwrap's place that changes something
on the host first, as another guest could, and then becomes bwrap."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

import harness

BWRAP = shutil.which("bwrap")


@pytest.fixture
def place():
    # As root bwrap is another user, who must be able to reach and change it, as the interfering guest could.
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name)
        for directory in (path, path / "bin", path / "data", path / "secret"):
            directory.mkdir(exist_ok=True)
            directory.chmod(0o777)
        (path / "data/note").write_text("granted\n")
        (path / "secret/note").write_text("SECRET\n")
        yield path


def run(place, interfere, *arguments):
    """The result of a run whose bwrap does `interfere`, a piece of a shell script, before it begins."""
    program = place / "bin/bwrap"
    program.write_text(f"#!/bin/sh\ncd {place}\n{interfere}\nexec {BWRAP} \"$@\"\n")
    program.chmod(0o755)
    env = {**os.environ, "PATH": f"{place}/bin:{os.environ['PATH']}"}
    return harness.run_json("--backend", "bwrap", *arguments, env=env)


SWAPS = {
    "nothing": ("", True),
    "a link": ("mv data was && ln -s secret data", False),
    "a link on the way": ("mkdir up && mv data up/ && ln -s up/../secret data", False),
    "another directory": ("mv data was && mv secret data", False),
}


@pytest.mark.parametrize("swap", SWAPS)
def test_a_source_that_is_swapped_meanwhile_ends_the_launch(place, swap):
    interfere, fine = SWAPS[swap]
    result = run(place, interfere, "--ro", f"{place}/data:/data", "--", "cat", "/data/note")
    if fine:
        assert (result["verdict"], result["stdout"]) == ("exited", "granted\n"), result
        return
    assert result["verdict"] == "failed" and "see that /data is what was meant" in result["message"], result
    assert "SECRET" not in result["stdout"]
    shown = subprocess.run([BWRAP, "--ro-bind", "/", "/", "--ro-bind", place / "data", "/mnt", "cat", "/mnt/note"],
                           capture_output=True, text=True)
    assert shown.stdout == "SECRET\n", "a control: bwrap itself mounts what is there now"


def test_what_is_to_be_hidden_and_comes_meanwhile_ends_the_launch(place):
    arguments = ("--ro", f"{place}/data:/data", "--hide", "/data/key", "--", "cat", "/data/key")
    result = run(place, "echo KEY > data/key", *arguments)
    assert result["verdict"] == "failed" and "KEY" not in result["stdout"], result
    (place / "data/key").unlink()
    result = run(place, "", *arguments)
    assert result["exit_code"] == 1 and "No such file" in result["stderr"], result


def test_what_bwrap_only_warns_of_is_no_failure(place):
    result = run(place, "echo a warning >&2", "--", "sh", "-c", "kill -KILL $$")
    assert result["verdict"] == "signaled" and "warning" not in result["message"], result


def test_what_bwrap_says_is_told(place):
    result = run(place, "echo it is broken >&2; exit 1", "--", "true")
    assert result["verdict"] == "failed" and "it is broken; the command never ran" in result["message"], result
