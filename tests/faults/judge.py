"""What may come of a run that something went wrong in, and what may not.

Either the payload never ran and the verdict is Belljar's own, with a message; or it ran behind exactly the wall of an
undisturbed run, as it sees that itself from inside; or the receipt says which guard is missing and why.
"""

import difflib
import re

import harness
import injection

# Not made to fail: they end a process, can't fail, tell of it in another way than by an error (brk), do their work even when
# they tell of one (close), or are the C library's, which aborts at an error that the kernel never gives (futex; rseq
# of a thread, when that of the first one worked).
NEVER_FAIL = {"futex", "rseq", "exit", "exit_group", "rt_sigreturn", "restart_syscall", "brk", "close", "getpid", "getppid",
              "getuid", "geteuid", "getgid", "getegid", "gettid", "umask"}
# Without the answer of capget root is taken for anybody else: the same wall, made in the other order.
OTHER_WAY = {"capget"}
# How a program ends that did not see a failure coming: SIGABRT, SIGBUS, SIGSEGV; its own end, or as it is told by `run`.
CRASHED = {sign for number in (6, 7, 11) for sign in (-number, 128 + number)}
# What a receipt may say instead of a wall that is whole: limits of resources, which a watcher then keeps.
WATCHED = ("cgroup", "rlimit", "Seccomp")


def guards(result):
    return {entry["guard"]: (entry["state"], re.sub(r"uid \d+", "uid N", entry["by"])) for entry in result["receipt"]["guards"]}


def admitted(seen, usual):
    """Whether the receipt names a guard that is missing, with a reason."""
    if usual.result is None:
        return True  # With a terminal there is no receipt to be seen.
    if seen.result is None or seen.result["receipt"]["form"] != usual.result["receipt"]["form"]:
        return False
    before = guards(usual.result)
    less = [g for g in seen.result["receipt"]["guards"] if guards(seen.result)[g["guard"]] != before.get(g["guard"])]
    return bool(less) and all(g["state"] in ("absent", "partial") and g["reason"] for g in less)


def in_another_form(seen, usual):
    """A kernel that does not know mount_setattr has another form of the level, if it has Landlock; its receipt names what is
    absent."""
    if usual.result is None:
        return True  # With a terminal there is no receipt to be seen.
    receipt = seen.result["receipt"] if seen.result else {"form": None, "guards": []}
    return receipt["form"] == "landlock-only" and any(g["state"] == "absent" and g["reason"] for g in receipt["guards"])


def takes_away(line):
    """Whether a difference is only a file of the host that is not there: one that was looked for and seemed absent. What is
    mounted over /proc, /sys and /dev hides something, and is no such thing."""
    words = line.split()
    if line.startswith("- mount"):
        return not words[3].startswith(("/proc", "/sys", "/dev"))
    # Another error is as good: the kernel answers with its own where Belljar could not.
    return words[1] in ("open", "create", "socket") and words[-1] != "0"


def hold(wall, problem):
    """A wall that does not hold is no matter of luck: harness.Escape is final."""
    if not wall:
        raise harness.Escape(problem)


def judge(seen, usual):
    """What happened, in words; raises when it must not. Both are of injection.Injected."""
    assert seen.status != injection.HANGS, f"hangs: {seen}"
    assert seen.status not in CRASHED, f"crashed: {seen}"
    if seen.wall == "":  # It had begun and was ended before it could tell.
        assert seen.verdict in (None, "failed") and seen.status != injection.ENDED, f"ran, and then: {seen}"
        return "ran, then failed"
    if seen.status == injection.NO_MARKER:  # A mount that seemed absent, and so was not granted.
        return "ran with less to see"
    if seen.wall is not None:
        differences = [line for line in difflib.ndiff(usual.wall.splitlines(), seen.wall.splitlines()) if line[0] in "+-"]
        if not differences:
            assert seen.status == injection.ENDED or seen.verdict in (None, "failed"), f"ran, and then: {seen}"
            return "ran behind the whole wall" if seen.status == injection.ENDED else "ran, then failed"
        if seen.call in OTHER_WAY:
            return "ran in another way"
        if seen.call == "mount_setattr" and in_another_form(seen, usual):
            return "ran in another form, which the receipt names"
        if all(takes_away(line) for line in differences):
            return "ran with less to see"
        hold(all(line[2:].startswith(WATCHED) for line in differences), f"ran with a hole: {differences}, {seen}")
        hold(admitted(seen, usual), f"the receipt is silent: {differences}, {seen}")
        return "ran, receipt tells what is missing"
    hold(seen.status != 0, f"a success without a run: {seen}")
    if seen.result is not None:
        assert seen.verdict in ("failed", "refused") or seen.result["exit_code"] in (126, 127), str(seen)
        assert len(seen.result["message"]) > 10, str(seen)
    else:  # A standard stream that seems closed is nothing to complain to.
        assert seen.errors or seen.status >= 128 or seen.call == "fcntl", f"silent: {seen}"
    return "never ran"
