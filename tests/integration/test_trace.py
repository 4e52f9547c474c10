"""`belljar run --trace`: what was refused or missing is named, with the grant that would allow it; and the guest does not
notice that it is followed.

As an unprivileged user everything runs in the form without user namespaces as well.
"""

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import time

import pytest

import harness
from harness import BELLJAR, PYTHON, guest

FLOOD = 100_000 if harness.LONG else 20_000
TIMEOUT = 2 * harness.PATIENCE
FORMS = ["namespaces"] if harness.IS_ROOT else ["namespaces", "landlock-only"]


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


def command(form, *arguments):
    prefix = [guest("forbid_userns")] if form == "landlock-only" else []
    return [*prefix, BELLJAR, "run", *map(str, arguments)]


def trace(form, *arguments, timeout=TIMEOUT, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run(command(form, "--trace", "--json", *arguments), capture_output=True, text=True, errors="replace",
                          timeout=timeout, **options)
    result = harness.Result(json.loads(done.stdout))
    result.status, result.notes = done.returncode, done.stderr
    if result["verdict"] not in ("refused", "failed"):
        assert result["receipt"]["form"] == form
        assert harness.guard(result, "trace")["state"] == "enforced"
    return result


def behave(form, *words, flags=()):
    program = guest("trace_guest")
    result = trace(form, "--ro", program, *flags, "--", program, *words)
    assert (result.verdict, result["exit_code"], result["stdout"]) == ("exited", 0, "ok\n"), (result["stdout"], result["message"])
    return result


def denials(result, kind="file"):
    return [denial for denial in result["denials"] if denial["kind"] == kind]


def about(result, target):
    found = [denial for denial in result["denials"] if denial["target"] == str(target)]
    assert found, f"nothing about {target} in {[(d['operation'], d['target']) for d in result['denials']]}"
    return found[0]


# -- what is told ----------------------------------------------------------------------------------------------------------

def test_missing_file_is_named_with_its_grant_and_the_grant_works(form, shared):
    data = shared / "x.csv"
    data.write_text("6\n7\n")
    program = f"import math; print(math.prod(int(line) for line in open({str(data)!r})))"
    lacking = trace(form, "--", PYTHON, "-c", program)
    assert lacking["exit_code"] == 1
    denial = lacking["denials"][0]
    assert (denial["kind"], denial["operation"], denial["target"], denial["resolved"]) == ("file", "open", str(data), str(data))
    assert denial["grant"] == f"--ro {data}"
    granted = trace(form, *shlex.split(denial["grant"]), "--", PYTHON, "-c", program)
    assert (granted["exit_code"], granted["stdout"]) == (0, "42\n")
    policy = shared / "policy.toml"
    policy.write_text(denial["fragment"] + "\n")
    assert trace(form, "--policy", policy, "--", PYTHON, "-c", program)["stdout"] == "42\n"


def test_relative_name_means_the_callers_directory(shared):
    """There is no other place that `python3 job.py` could mean; without namespaces it can't be mounted elsewhere."""
    (shared / "job.py").write_text("print(42)")
    lacking = trace("namespaces", "--", PYTHON, "job.py", cwd=shared)
    denial = about(lacking, "/workspace/job.py") if "/workspace/job.py" in str(lacking["denials"]) else about(lacking, "job.py")
    assert denial["resolved"] == "/workspace/job.py"
    grant = f"--ro {shared}/job.py:/workspace/job.py"
    assert grant in [d["grant"] for d in lacking["denials"]]
    assert trace("namespaces", *grant.split(), "--", PYTHON, "job.py", cwd=shared)["stdout"] == "42\n"


def test_refused_write(form, shared):
    target = shared / "new"
    write = ["/bin/sh", "-c", ': > "$0"', target]
    result = trace(form, "--ro", shared, "--", *write)
    assert result["exit_code"] != 0
    denial = about(result, target)
    assert denial["grant"] == f"--rw {shared}"
    assert trace(form, "--rw", shared, "--", *write)["exit_code"] == 0
    assert target.exists()
    system = about(trace(form, "--", "/usr/bin/touch", "/usr/lib/belljar-was-here"), "/usr/lib/belljar-was-here")
    assert system["grant"] == ""


def test_links_are_followed_inside(form, shared):
    (shared / "real").write_text("x")
    result = trace(form, "--", "/bin/sh", "-c", f"ln -s {shared}/real $HOME/link; cat $HOME/link")
    # HOME is the guest's own; what the link leads to is what has to be granted.
    assert f"--ro {shared}/real" in [denial["grant"] for denial in denials(result)]


def test_missing_program(form):
    result = trace(form, "--", "/bin/sh", "-c", "no-such-program-here; exec /opt/no/such/tool")
    assert about(result, "/opt/no/such/tool")["operation"] == "exec"
    own = trace(form, "--", "no-such-program-here")
    assert (own["exit_code"], about(own, "no-such-program-here")["operation"]) == (127, "exec")


def test_refused_connections():
    program = """
import socket
for address in ("192.0.2.1", 80), ("127.0.0.1", 9):
    try: socket.create_connection(address)
    except OSError: pass
try: socket.getaddrinfo("example.com", 80)
except OSError: pass
try: socket.socket(socket.AF_UNIX).connect("/run/no-such.sock")
except OSError: pass
"""
    result = trace("namespaces", "--", PYTHON, "-c", program)
    told = {denial["target"]: denial for denial in denials(result, "network")}
    assert "no network" in told["192.0.2.1:80"]["rule"] and told["192.0.2.1:80"]["operation"] == "connect"
    assert "nobody listens" in told["127.0.0.1:9"]["rule"]
    assert "unix:/run/no-such.sock" in told
    assert any("name" in denial["rule"] for denial in told.values()), told


def test_searches_that_end_well_are_no_denials(form, shared):
    (shared / "b").mkdir()
    (shared / "b" / "wanted.txt").write_text("x")
    program = f"for d in 'abc':\n  try: open('{shared}/' + d + '/wanted.txt'); break\n  except OSError: pass\nopen('{shared}/lost.txt')"
    result = trace(form, "--ro", shared, "--", PYTHON, "-c", program)
    targets = [denial["target"] for denial in result["denials"]]
    assert f"{shared}/a/wanted.txt" not in targets and f"{shared}/lost.txt" in targets


def test_secrets_get_no_grant(shared):
    home = shared / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_ed25519").write_text("secret")
    (home / ".toolrc").write_text("x")
    result = trace("namespaces", "--", "/bin/sh", "-c", f"cat {home}/.ssh/id_ed25519 ~/.ssh/id_ed25519 {home}/.toolrc",
                   env={**os.environ, "HOME": str(home)})
    told = {denial["target"]: denial for denial in denials(result)}
    for target in (f"{home}/.ssh/id_ed25519", "/tmp/home/.ssh/id_ed25519"):
        assert told[target]["grant"] == told[target]["fragment"] == "", told[target]
    assert told[f"{home}/.toolrc"]["grant"] == f"--ro {home}/.toolrc"


def test_directories_with_secrets_get_no_grant(shared):
    """The grant would hand over all that is below."""
    home = shared / "home"
    (home / ".config/gh").mkdir(parents=True)
    (home / ".config/plain").mkdir()
    result = trace("namespaces", "--", "/bin/ls", f"{home}/.config", f"{home}/.config/plain", env={**os.environ, "HOME": str(home)})
    told = {denial["target"]: denial for denial in denials(result)}
    assert told[f"{home}/.config"]["grant"] == "" and "secrets" in told[f"{home}/.config"]["rule"], told
    assert told[f"{home}/.config/plain"]["grant"] == f"--ro {home}/.config/plain"


def test_people_get_a_table_and_terminals_no_escapes(form, shared):
    (shared / "x.csv").write_text("x")
    program = guest("trace_guest")
    done = subprocess.run(command(form, "--trace", "--ro", program, "--", "/bin/sh", "-c", f"cat {shared}/x.csv; {program} odd-paths"),
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT)
    table = done.stderr.decode()
    assert f"--ro {shared}/x.csv" in table and "most telling first" in table
    assert b"\x1b" not in done.stderr and b"\x07" not in done.stderr and b"\xff" not in done.stderr
    result = trace(form, "--ro", program, "--", program, "odd-paths")
    assert "/missing/\x1b]0;title\x07\x1b[31m\nred" in [d["target"] for d in result["denials"]], "JSON has it as it was"
    quiet = subprocess.run(command(form, "--trace", "--quiet", "--", "/bin/cat", shared / "x.csv"), stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, timeout=TIMEOUT)
    assert "belljar" not in quiet.stderr


def test_hint_without_trace(shared):
    (shared / "x.csv").write_text("x")
    run = lambda *a: subprocess.run(command("namespaces", *a), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                    timeout=TIMEOUT)
    assert "--trace" in run("--", "/bin/cat", shared / "x.csv").stderr
    assert "--trace" not in run("--quiet", "--", "/bin/cat", shared / "x.csv").stderr
    assert "--trace" not in run("--", "/bin/sh", "-c", "exit 3").stderr, "nothing was said about files"
    assert "--trace" not in run("--", "/bin/sh", "-c", "cat /nowhere; exit 0").stderr, "it did not fail"
    assert "--trace" not in run("--level", "process", "--", "/bin/cat", "/nowhere").stderr, "nothing of the host is hidden"
    assert "--trace" in json.loads(run("--json", "--", "/bin/cat", shared / "x.csv").stdout)["hint"]
    assert json.loads(run("--json", "--", "/bin/true").stdout)["hint"] == ""


# -- the guest does not notice ---------------------------------------------------------------------------------------------

@pytest.mark.parametrize("what", ["exec-from-thread", "threads", "forks", "stop", "signals"])
def test_tracing_is_transparent(form, what):
    outside = harness.outside("trace_guest", what) if what != "signals" else None  # Its fifo would be the host's.
    assert outside is None or outside.stdout == "ok\n"
    result = behave(form, what)
    if what == "threads":
        assert sum(d["count"] for d in denials(result) if d["target"].startswith("/missing/t")) == 8 * 300
    if what == "forks":
        assert about(result, "/missing/by-a-child")["count"] == 50
    if what == "stop":
        about(result, "/missing/after-the-stop")


def test_odd_bytes(form):
    targets = [denial["target"] for denial in behave(form, "odd-paths")["denials"]]
    assert "/missingB" in targets and "/missing/across" in targets
    assert any(t.endswith("missing-far") for t in targets) and "missing-relative" in targets


def test_racing_bytes(form):
    for denial in behave(form, "race")["denials"]:
        assert denial["target"], denial


def test_shells_jobs_and_exit_codes(form):
    script = "(exit 3); echo $?; sh -c 'kill -TERM $$'; echo $?; (sleep 0.05; exit 4) & wait $!; echo $?"
    assert trace(form, "--", "/bin/sh", "-c", script)["stdout"] == "3\n143\n4\n"
    crashed = trace(form, "--", "/bin/sh", "-c", "kill -SEGV $$")
    assert (crashed.verdict, crashed["signal"]) == ("signaled", signal.SIGSEGV)


def test_what_is_refused_stays_refused(form):
    """The filter that asks for stops is beside the allow-list, never above it."""
    program = "import ctypes; c = ctypes.CDLL(None, use_errno=True); r = c.mount(0, 0, 0, 0, 0); print(r, ctypes.get_errno())"
    result = trace(form, "--", PYTHON, "-c", program)
    assert result["stdout"] == "-1 1\n"
    assert about(result, "")["operation"] == "mount"


# -- bounds ------------------------------------------------------------------------------------------------------------------

def test_flood_is_bounded(form, tmp_path):
    """Many different missing paths (100,000 in a long run): bounded in memory and in what is told."""
    program = guest("trace_guest")
    with open(tmp_path / "result.json", "w") as output:
        process = subprocess.Popen(command(form, "--trace", "--json", "--wall", "unlimited", "--ro", program, "--", program, "flood", FLOOD),
                                   stdin=subprocess.DEVNULL, stdout=output)
    peak = 0
    pid = process.pid
    with contextlib.suppress(OSError):
        while process.poll() is None:
            found = re.search(r"VmHWM:\s+(\d+)", open(f"/proc/{pid}/status").read())  # A zombie has none.
            peak = max(peak, int(found[1]) if found else 0)
            time.sleep(0.01)
    process.wait()
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["stdout"] == "ok\n"
    assert len(result["denials"]) <= 4097
    more = [denial for denial in result["denials"] if denial["operation"] == "more"]
    assert more and more[0]["count"] + sum(d["count"] for d in denials(result) if d["target"].startswith("/missing/")) == FLOOD
    assert 0 < peak < 24 * 1024, f"belljar had {peak} KiB"


@pytest.mark.parametrize("words", [["flood", "100000000"], ["maze"], ["race"]])
def test_deadline_holds_under_trace(form, words):
    program = guest("trace_guest")
    result = trace(form, "--wall", "400ms", "--ro", program, "--", "/bin/sh", "-c", f"while :; do {program} {' '.join(words)}; done")
    assert result.verdict == "timed_out"


def test_nothing_is_left_when_belljar_is_killed(form, shared, leftovers):
    word, ready = harness.token(), shared / "ready"
    script = f"while :; do cat /nowhere; : > {ready}; sleep 0.01; done"
    process = subprocess.Popen(command(form, "--trace", "--rw", shared, "--", "/bin/sh", "-c", script, word),
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert harness.wait_until(ready.exists), process.poll()
    process.kill()
    process.wait()
    if not harness.wait_until(lambda: not harness.processes_with(word)):
        raise harness.LeftBehind("the guest outlived belljar")


def test_cancel_under_trace(form, shared, leftovers):
    ready = shared / "ready"
    process = subprocess.Popen(command(form, "--trace", "--json", "--wall", "300s", "--rw", shared, "--", "/bin/sh", "-c",
                                       f": > {ready}; sleep 600; :"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert harness.wait_until(ready.exists), process.poll()
    process.send_signal(signal.SIGINT)
    assert json.loads(process.communicate(timeout=harness.PATIENCE)[0])["verdict"] == "cancelled"


def test_level_process_can_be_traced(leftovers):
    result = harness.run_json("--level", "process", "--trace", "--", "/bin/cat", "/no/such/file")
    assert about(result, "/no/such/file")["rule"].startswith("missing")


def test_refused_where_ptrace_is_not_to_be_had(tmp_path):
    """Under a filter that forbids ptrace the command must not run untraced."""
    source = tmp_path / "forbid_ptrace.c"
    source.write_text(r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv) {
  (void)argc;
  struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                               BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
                               BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                               BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {sizeof code / sizeof *code, code};
  if (getuid() != 0) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) return 99;
  execv(argv[1], argv + 1);
  return 98;
}
""")
    wrapper = tmp_path / "forbid_ptrace"
    subprocess.run(["gcc", "-o", wrapper, source], check=True)
    done = subprocess.run([wrapper, BELLJAR, "run", "--trace", "--json", "--", "/bin/echo", "it ran"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=TIMEOUT)
    result = json.loads(done.stdout)
    assert (result["verdict"], done.returncode, result["stdout"]) == ("refused", 125, "")
    assert "ptrace" in result["message"] and "--trace" in result["message"]
    plain = subprocess.run([wrapper, BELLJAR, "run", "--", "/bin/echo", "it ran"], stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, timeout=TIMEOUT)
    assert plain.stdout == "it ran\n"
