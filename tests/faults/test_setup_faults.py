"""Every system call of the set-up is made to fail in turn, in every process of ours and every form: the payload must never
run behind a wall with a hole in it.

The rule for each injected failure: either the payload never ran and the verdict is Belljar's own (failed, refused) with a
message, or it ran behind exactly the wall of an undisturbed run, as it sees that itself from inside (the call did not
matter: a clean-up, a look at an optional file), or the receipt says which guard is missing and why (the call was the
question whether the host has it). And nothing is left behind.
"""

import concurrent.futures
import errno

import pytest

import harness
import injection
from judge import NEVER_FAIL, judge

# EPERM is what hosts answer when they forbid something, and the one that makes Belljar look for another form.
# The others take other ways: an interrupted call, no such call, no memory, a broken disk.
ERRORS = [errno.EPERM, errno.ENOSYS, errno.EINTR, errno.ENOMEM, errno.EIO, errno.EAGAIN] if harness.LONG else [errno.EPERM]
MOST_ALIKE = 40 if harness.LONG else 3
FORMS = list(injection.FORMS) if harness.LONG else ["namespaces", "process-namespaces" if harness.IS_ROOT else "landlock-only"]


@pytest.fixture(scope="module", params=FORMS)
def undisturbed(request):
    with injection.Injector(request.param) as injector:
        first, second = injector.run(), injector.run()
        assert first.status == injection.ENDED and first.wall, first
        assert first.wall == second.wall, "two undisturbed runs must see the same wall"
        yield injector, first


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.get)
def test_each_failing_call(undisturbed, number, faults, leftovers):
    injector, usual = undisturbed
    calls = [call for call in usual.calls if injection.call_name(call.number) not in NEVER_FAIL]
    calls = [call for call in calls if (call.role, call.nth) > (0, 1)]  # The first is the start of belljar itself.
    chosen = injection.moments(calls, MOST_ALIKE)
    wrong, outcomes, escaped = [], [], []

    def one(call):
        seen = injector.run(call.role, call.nth, number)
        where = injection.who(call, usual.calls, usual.guests)
        try:
            reached = seen.done and seen.done[2] not in NEVER_FAIL  # The number of calls may differ by a few.
            outcome = judge(seen, usual) if reached else "not reached"
        except AssertionError as problem:
            wrong.append(f"{where}: {problem}")
            if isinstance(problem, harness.Escape):
                escaped.append(problem)
            outcome = "wrong"
        outcomes.append(outcome)
        faults.record(f"each call fails with {errno.errorcode[number]}", f"{injector.form}: {where}", outcome)

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(one, chosen))
    print(f"{injector.form}: {len(calls)} calls, {len(chosen)} made to fail", {word: outcomes.count(word) for word in set(outcomes)})
    if wrong:
        raise (harness.Escape if escaped else AssertionError)(f"{len(wrong)} of {len(chosen)}:\n" + "\n".join(sorted(wrong)[:20]))
    assert outcomes.count("never ran") > len(chosen) / 6, "the injection must bite"


def test_init_lets_go_of_what_it_inherited_before_it_makes_anything(undisturbed):
    """What it holds of other runs of its caller (their pipes, their control sockets) keeps those from seeing their end."""
    _, usual = undisturbed
    calls = [injection.call_name(call.number) for call in usual.calls if injection.who(call, usual.calls, usual.guests) == "init"]
    before = set(calls[:calls.index("close_range")])
    assert before <= {"getppid", "rt_sigaction", "prctl", "openat", "fcntl"}, before


def test_control_each_process_is_reached(undisturbed):
    """The rule would hold trivially if nothing was injected: the last step of init and of the command must stop the launch."""
    injector, usual = undisturbed
    roles = {injection.who(call, usual.calls, usual.guests) for call in usual.calls}
    assert {"belljar", "init", "command before exec"} <= roles, roles
    last = [call for call in usual.calls if call.role in usual.guests and injection.call_name(call.number) == "execve"][-1]
    seen = injector.run(last.role, last.nth, errno.EPERM)
    assert seen.wall is None and seen.status == 126, seen
