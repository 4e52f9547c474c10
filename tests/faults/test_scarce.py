"""Belljar itself runs short: of descriptors, of address space, of memory, of processes. It says so, or it runs behind the
whole wall; the payload never runs behind a wall with a hole, and nothing is left behind.
"""

import contextlib
import os
import pathlib
import re
import resource
import subprocess

import pytest

import harness
import injection
from judge import judge

FORMS = [form for form in injection.FORMS if form != "terminal"]


def without_limits(seen):
    """Limits of the caller are handed on, so they are part of neither wall. What is short outside is short inside."""
    if seen.wall:
        seen.wall = re.sub(r"/bj-scarce-\d+", "", re.sub(r"(?m)^rlimit.*\n", "", seen.wall))
    return seen


@pytest.fixture(scope="module", params=FORMS)
def undisturbed(request):
    with injection.Injector(request.param) as injector:
        usual = without_limits(injector.run_under())
        assert usual.status == injection.ENDED and usual.wall, usual
        yield injector, usual


def sweep(undisturbed, faults, fault, values, **how):
    """One run for each value; the outcomes in that order."""
    injector, usual = undisturbed
    outcomes = []
    for value in values:
        options = {name: make(value) for name, make in how.items()}
        seen = without_limits(injector.run_under(**options))
        try:
            outcomes.append(judge(seen, usual))
        except AssertionError as problem:
            raise type(problem)(f"{fault}, {value}: {problem}") from None  # An escape stays one.
        faults.record(fault, injector.form, outcomes[-1])
    return outcomes


def limit(kind):
    return lambda value: lambda: resource.setrlimit(kind, (value, value))


def test_few_descriptors(undisturbed, faults, leftovers):
    outcomes = sweep(undisturbed, faults, "RLIMIT_NOFILE of 3 to 40 (EMFILE)", range(3, 41), preexec_fn=limit(resource.RLIMIT_NOFILE))
    assert outcomes[0] == "never ran", "three are too few"
    assert outcomes[-1] == "ran behind the whole wall", "forty are enough"


def starts(bytes_of_address_space):
    """Whether the program can be loaded at all: below that it is the kernel that kills it, before its first instruction."""
    done = subprocess.run([harness.BELLJAR, "--version"], capture_output=True, preexec_fn=limit(resource.RLIMIT_AS)(bytes_of_address_space))
    return done.returncode >= 0


def test_little_address_space(undisturbed, faults, leftovers):
    values = [kilobytes << 10 for kilobytes in (*range(3000, 6000, 50), 8192, 16384, 65536)]
    values = [value for value in values if starts(value)]
    outcomes = sweep(undisturbed, faults, "RLIMIT_AS from what it takes to start up to 64M (ENOMEM)", values, preexec_fn=limit(resource.RLIMIT_AS))
    assert outcomes[0] != "ran behind the whole wall", "what is enough to start is too little to run"
    assert outcomes[-1] == "ran behind the whole wall"


def own_processes():
    """How many processes and threads of this user there are: RLIMIT_NPROC counts them all."""
    count = 0
    for path in pathlib.Path("/proc").glob("[0-9]*/task/[0-9]*"):
        with contextlib.suppress(OSError):
            count += path.stat().st_uid == os.getuid()
    return count


if not harness.IS_ROOT:  # Root may pass its own limit.
    def test_clone_is_refused(undisturbed, faults, leftovers):
        injector, _ = undisturbed
        values = [0, 1, 2, *[own_processes() + more for more in (0, 1, 2, 3, 4, 200)]]
        outcomes = sweep(undisturbed, faults, "RLIMIT_NPROC (EAGAIN of clone)", values, preexec_fn=limit(resource.RLIMIT_NPROC))
        assert "never ran" in outcomes[:3], injector.form
        assert outcomes[-1] == "ran behind the whole wall"


def group(controller):
    """A control group of its own below this process's, for root."""
    for path in harness.own_cgroups():
        if f"/{controller}" in path or os.path.exists(f"{path}/{controller}.max"):
            return pathlib.Path(path, f"bj-scarce-{os.getpid()}")
    return None


@pytest.fixture
def cramped(request):
    """A function that starts a program in a control group with a limit."""
    made = []

    def enter(controller, file, value):
        path = group(controller)
        if path is None or not os.access(path.parent, os.W_OK):
            return None
        if not path.exists():
            path.mkdir()
            made.append(path)
        (path / file).write_text(str(value))
        return lambda: (path / "cgroup.procs").write_text(str(os.getpid()))

    yield enter
    for path in made:
        assert harness.wait_until(lambda p=path: not (p / "cgroup.procs").read_text()), "processes are left in the group"
        for inner in sorted(path.glob("belljar-*")):
            raise harness.LeftBehind(str(inner))
        path.rmdir()


def remove_what_two_dead_leave(before, tell):
    """Where the kernel killed the janitor too, nobody was left to clean up. Never processes, though: they die with init."""
    try:
        before.check()
    except AssertionError:
        left = sorted(before._look() - before.before)
        assert all(entry.startswith(("control group ", "file ")) for entry in left), left
        for entry in left:
            path = entry.removeprefix("control group ").removeprefix("file ")
            with contextlib.suppress(FileNotFoundError):
                os.rmdir(path)
        tell(len(left))


if harness.IS_ROOT and os.path.isdir("/sys/fs/cgroup/pids"):  # v1: a group may have both processes and groups.
    def test_no_pids_left(undisturbed, faults, cramped, leftovers):
        """As on a host that is out of pids: the kernel answers EAGAIN in both cases."""
        outcomes = sweep(undisturbed, faults, "pids.max of 1 to 12 around belljar (EAGAIN of clone)", range(1, 13),
                         preexec_fn=lambda value: cramped("pids", "pids.max", value))
        assert outcomes[0] == "never ran" and outcomes[-1] == "ran behind the whole wall", outcomes

    @pytest.mark.long
    def test_belljar_out_of_memory(undisturbed, faults, cramped):
        """The kernel kills what it likes inside the group: belljar, its janitor, init or the guest."""
        injector, usual = undisturbed
        before = harness.Leftovers()
        for kilobytes in (128, 256, 512, 768, 1024, 1280, 1536, 1792, 2048, 3072, 4096, 8192, 65536):
            seen = without_limits(injector.run_under(preexec_fn=cramped("memory", "memory.limit_in_bytes", kilobytes << 10)))
            killed = seen.status in (-9, 128 + 9)
            honest = seen.verdict in ("failed", "refused", "out_of_memory", "signaled", "process_limit", None)
            whole = seen.status == injection.ENDED and seen.wall == usual.wall
            assert killed or whole or (honest and seen.status != 0), f"{kilobytes}K: {seen}"
            faults.record("memory limit of 128K to 64M around belljar", injector.form,
                          "belljar was killed" if killed else "ran behind the whole wall" if whole else f"verdict {seen.verdict}")
        assert whole, "64M are enough"
        remove_what_two_dead_leave(before, lambda count: faults.record(
            "memory limit of 128K to 64M around belljar", injector.form, "of these, belljar and its janitor were killed: things left", count))
