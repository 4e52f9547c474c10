"""The place for temporary files is full, out of inodes, read-only, gone, or broken: a run that needs it fails with a message
that names it, and nothing is left behind. Runs that need no directory on the host do not notice.
"""

import errno
import itertools
import json
import os
import random
import shutil
import subprocess

import pytest

import harness
import injection
from harness import guest

NEEDS_A_DIRECTORY = ["process-namespaces"] if harness.IS_ROOT else ["process-namespaces", "landlock-only", "process-plain"]


def start(form, *arguments, env, tool=()):
    prefix, level = injection.FORMS[form]
    done = subprocess.run([*[guest(name) for name in prefix], *tool, harness.BELLJAR, "run", "--json", *level, "--", *arguments],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=2 * harness.PATIENCE,
                          env={**os.environ, **env})
    return json.loads(done.stdout)


@pytest.mark.parametrize("form", NEEDS_A_DIRECTORY)
@pytest.mark.parametrize("kind", ["absent", "a file", "read-only"])
def test_no_place_for_temporary_files(form, kind, tmp_path, faults, leftovers):
    place = tmp_path / "place"
    if kind == "a file":
        place.touch()
    elif kind == "read-only":
        if harness.IS_ROOT:
            return  # Modes do not stop root.
        place.mkdir(mode=0o500)
    result = start(form, "/bin/echo", "ran", env={"TMPDIR": str(place)})
    assert result["verdict"] == "failed" and result["stdout"] == "", result
    assert "TMPDIR" in result["message"], result["message"]
    faults.record("TMPDIR is absent, a file, or read-only", form, "verdict failed, the message names it")


@pytest.mark.parametrize("form", NEEDS_A_DIRECTORY)
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS], ids=errno.errorcode.get)
def test_making_the_directory_fails(form, number, faults, leftovers):
    with injection.Injector(form) as injector:
        making_fails(injector, form, number, faults)


def fails_to_make(injector, index, number):
    """A run in which the making of directory number `index` failed, and one without. How many calls come before it is not the
    same each time."""
    makes = ("mkdir", "mkdirat")
    for _ in range(20):
        usual = injector.run()
        calls = [call for call in usual.calls if call.role == 0 and injection.call_name(call.number) in makes]
        if index >= len(calls):
            return None
        seen = injector.run(calls[index].role, calls[index].nth, number)
        if seen.call in makes:
            return usual, seen
    raise AssertionError("no call that makes a directory was hit")


def making_fails(injector, form, number, faults):
    for index in itertools.count():
        runs = fails_to_make(injector, index, number)
        if runs is None:
            break
        usual, seen = runs
        if number == errno.ENOSPC and seen.wall == usual.wall:
            # Hosts without room for more namespaces say the same, so another form was tried, and its directory was made.
            faults.record("mkdir fails with ENOSPC", form, "ran behind the whole wall, at the second try")
            continue
        assert seen.wall is None and seen.verdict == "failed", str(seen)
        assert os.strerror(number) in seen.result["message"], seen.result["message"]
        faults.record(f"mkdir fails with {errno.errorcode[number]}", form, "verdict failed, the message names the cause")
    assert index > 0, "the form makes a directory"


@pytest.mark.parametrize("form", NEEDS_A_DIRECTORY)
def test_removing_fails_once(form, faults, leftovers):
    """EIO at each step of the clean-up: what belljar can't remove, its janitor tries again."""
    with injection.Injector(form) as injector:
        removing_fails(injector, form, faults)
    leftovers.check()


def removing_fails(injector, form, faults):
    usual = injector.run()
    clean_up = ("rmdir", "unlinkat", "getdents64", "fchmodat", "lseek")
    calls = [call for call in usual.calls if injection.call_name(call.number) in clean_up]
    assert calls, "the form removes a directory"
    for call in calls:
        seen = injector.run(call.role, call.nth, errno.EIO)
        if seen.call not in clean_up:
            continue  # The number of calls differs a little from run to run.
        assert seen.status == injection.ENDED or seen.verdict == "failed", str(seen)
        faults.record("a call of the clean-up fails with EIO", form, "the result is the same, nothing is left")


if harness.IS_ROOT:
    @pytest.fixture
    def small_disk(tmp_path):
        """A filesystem of 64 kB and 8 inodes, in this process's own view. No other place of the host is filled."""
        place = tmp_path / "disk"
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=8,mode=1777", "none", place], check=True)
        yield place
        subprocess.run(["umount", "-l", place], check=True)

    @pytest.mark.parametrize("what", ["bytes", "inodes"])
    def test_full_disk(what, small_disk, faults):
        """TMPDIR is full: in the form without mounts a run says so, in the others it has its own filesystem."""
        with open(small_disk / "filler", "wb") as filler:
            if what == "bytes":
                with pytest.raises(OSError, match="No space"):
                    filler.write(bytes(1 << 20))
                    filler.flush()
        if what == "inodes":
            with pytest.raises(OSError, match="No space"):
                for number in range(100):
                    (small_disk / str(number)).touch()
        env = {"TMPDIR": str(small_disk)}
        result = start("process-namespaces", "/bin/sh", "-c", "echo ran > file && cat file", env=env)
        honest = result["verdict"] == "failed" and "TMPDIR" in result["message"]
        assert honest or (result["verdict"] == "exited" and result["stdout"] == "ran\n"), result
        faults.record(f"TMPDIR has no {what} left", "process-namespaces", "verdict failed, the message names it" if honest else "ran on its own filesystem")
        assert start("namespaces", "/bin/sh", "-c", "echo ran > file && cat file", env=env)["stdout"] == "ran\n"
        faults.record(f"TMPDIR has no {what} left", "namespaces", "ran: it needs no place on the host")
        for path in small_disk.iterdir():
            path.unlink()  # Only what this test has made is there.


# -- failing calls of the C library, by lot ------------------------------------------------------------------------------------

# Not posix/io/oc/close: a close that tells of an error has closed all the same, and libfiu's has not.
POINTS = ["posix/io/rw/*", "posix/io/oc/open", "posix/io/dir/*", "posix/proc/*", "posix/mm/*"]


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.split("/")[-2])
def test_calls_of_the_c_library_fail_by_lot(point, faults, leftovers):
    """Two in a hundred calls fail. Whatever comes of it: one line of JSON or a message, and never a success that was none."""
    tool = shutil.which("fiu-run")
    assert tool, "fiu-run is needed; tools/packages.txt lists it"
    good = broken = 0
    lot = random.Random(point)
    for _ in range(60 if harness.LONG else 12):
        seed = lot.randrange(1, 1 << 31)
        done = subprocess.run([tool, "-x", "-f", "", "-c", f"enable_random name={point},probability=0.02", guest("belljar_dynamic"),
                               "run", "--json", "--", "/bin/sh", "-c", "echo ran; exit 7"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=2 * harness.PATIENCE, env={**os.environ, "FIU_PRNG_SEED": str(seed)})
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        result = json.loads(lines[-1]) if lines else None
        if done.returncode == 0:
            raise harness.Escape(f"a success without a run, seed {seed}: {done}")
        if result and result["verdict"] == "exited" and result["exit_code"] == 7:
            good += 1
            continue
        broken += 1
        assert result is None or result["verdict"] in ("failed", "refused") or result["exit_code"] in (126, 127), (seed, result)
    faults.record("2 % of the C library's calls fail", point.rsplit("/", 1)[0], "verdict failed, or no run", broken)
    faults.record("2 % of the C library's calls fail", point.rsplit("/", 1)[0], "the run went on as ever", good)


def test_control_the_c_library_does_fail():
    done = subprocess.run([shutil.which("fiu-run"), "-x", "-c", "enable name=posix/io/oc/open", "/bin/cat", "/etc/passwd"], capture_output=True)
    assert done.returncode != 0
