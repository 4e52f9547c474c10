"""What deliberately does not work inside, as docs/compatibility.md says, and how a user learns why."""

import pytest

# command, package, the system call that the denials name
REFUSED = [
    ("strace true", "strace", "ptrace"),
    ("unshare --user true", "util-linux", "unshare"),
    ("mount -t tmpfs none /tmp", "mount", "mount"),
    ("chroot / true", "coreutils", "chroot"),
    ("chrt --fifo 1 true", "util-linux", "sched_setscheduler"),
    ("setarch --addr-no-randomize true", "util-linux", "personality"),
    ("dmesg", "util-linux", "syslog"),
    ("date --set now", "coreutils", "clock_settime"),
    ("hostname other", "hostname", "sethostname"),
]


@pytest.mark.parametrize("command, package, call", REFUSED, ids=[row[2] for row in REFUSED])
def test_refused(sandbox, system, command, package, call):
    argv = command.split()
    system(argv[0], package)
    outcome = sandbox.attempt(*argv)
    assert outcome.result["verdict"] == "exited" and outcome.result["exit_code"] != 0, outcome.describe()
    assert call in [d["operation"] for d in outcome.denials if d["kind"] == "syscall"], outcome.describe()


def test_leak_check_says_why(sandbox, system):
    """The address sanitizer's leak check ends a good program with an error; the denials tell which call was missing."""
    system("gcc")
    script = "gcc -fsanitize=address -x c - -o program && ./program"
    outcome = sandbox.attempt("sh", "-c", script, stdin="int main(void) { return 0; }\n")
    assert outcome.result["exit_code"] != 0 and "LeakSanitizer" in outcome.stderr
    assert "ptrace" in [d["operation"] for d in outcome.denials]


def test_fakeroot_as_it_is(sandbox, system):
    """The real chown fails by EINVAL and not, as on a host, by EPERM, which is all that fakeroot passes over."""
    system("fakeroot")
    outcome = sandbox.attempt("fakeroot", "sh", "-c", "touch f; chown 12:34 f")
    assert outcome.result["exit_code"] != 0 and "Invalid argument" in outcome.stderr, outcome.describe()
